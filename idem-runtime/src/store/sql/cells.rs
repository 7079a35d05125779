//! How a row of the table is read.

use sqlx::{ColumnIndex, Database, Decode, Row, Type, TypeInfo, ValueRef};

use crate::{
    record::{Record, Status},
    store::{Audit, Audited, ErrorClass, StoreError},
};

const CONTEXT: &str = "reading a row";

/// A row's cells, from left to right.
pub(crate) struct Cells<'r, R> {
    row: &'r R,
    next: usize,
}

impl<'r, R: Row> Cells<'r, R>
where
    usize: ColumnIndex<R>,
{
    pub(crate) fn of(row: &'r R) -> Self {
        Self { row, next: 0 }
    }

    /// The next cell. What cannot be read as `T` is an error that names the column and the type that was found.
    pub(crate) fn next<T>(&mut self) -> Result<T, StoreError>
    where
        T: Decode<'r, R::Database> + Type<R::Database>,
    {
        let at = self.next;
        self.next += 1;
        self.row.try_get(at).map_err(|error| self.unreadable::<T>(at, &error))
    }

    fn unreadable<T: Type<R::Database>>(&self, at: usize, error: &sqlx::Error) -> StoreError {
        use sqlx::Column as _;
        let column = self.row.columns().get(at).map_or("?", |column| column.name());
        let message = match self.row.try_get_raw(at) {
            Ok(value) => format!(
                "column `{column}` holds `{}` where `{}` is expected: {error}",
                value.type_info().name(),
                T::type_info().name(),
            ),
            Err(_) => error.to_string(),
        };
        StoreError::new(ErrorClass::Permanent, CONTEXT, message)
    }
}

/// The record in the cells that follow, under a key that was read already.
pub(crate) fn record<'r, R: Row>(cells: &mut Cells<'r, R>, key: String) -> Result<Record, StoreError>
where
    usize: ColumnIndex<R>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    i32: Decode<'r, R::Database> + Type<R::Database>,
    R::Database: Database,
{
    Ok(Record {
        key,
        status: Status::from(cells.next::<String>()?.as_str()),
        job: cells.next()?,
        template: cells.next()?,
        mode: cells.next()?,
        on_stale: cells.next()?,
        owner: cells.next()?,
        fence: cells.next()?,
        attempt: cells.next()?,
        takeovers: cells.next()?,
        lease_until: cells.next()?,
        fingerprint: cells.next()?,
        result: cells.next()?,
        error: cells.next()?,
        worker: cells.next()?,
        expires_at: cells.next()?,
        alerted_at: cells.next()?,
        created_at: cells.next()?,
        completed_at: cells.next()?,
        now: cells.next()?,
        phases: Vec::new(),
    })
}

/// A line of the audit table.
pub(crate) fn audited<'r, R: Row>(row: &'r R) -> Result<Audited, StoreError>
where
    usize: ColumnIndex<R>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    R::Database: Database,
{
    let mut cells = Cells::of(row);
    Ok(Audited {
        at: cells.next()?,
        audit: Audit {
            actor: cells.next()?,
            from_status: cells.next()?,
            to_status: cells.next()?,
            note: cells.next()?,
            old_result: cells.next()?,
        },
    })
}
