//! What the table must look like, and what to say where it does not.

use std::fmt::Write as _;

use crate::store::sql::Table;

/// The version of the table's shape that this build reads and writes.
pub(crate) const VERSION: i32 = 1;

/// A column that must be there.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// Its type and default, as `ALTER TABLE … ADD COLUMN` takes them. `None` where it cannot be added afterwards.
    pub(crate) ddl: Option<&'static str>,
    /// The types that can be read, as the dialect names them.
    pub(crate) types: &'static [&'static str],
}

/// A column that is there.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) type_name: String,
}

/// The table as it was found.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// The columns; none where there is no table.
    pub(crate) columns: Vec<Found>,
    /// Whether two rows cannot have one key.
    pub(crate) key_is_unique: bool,
    /// What the companion table says; `None` where it is missing or empty.
    pub(crate) version: Option<i32>,
    /// Whether the audit table is there.
    pub(crate) audited: bool,
}

impl Shape {
    /// Whether all that is needed is there, or what is wrong with what is there.
    pub(crate) fn is_complete(&self, table: &Table, wanted: &[Column]) -> Result<bool, String> {
        if let Some(version) = self.version.filter(|version| *version > VERSION) {
            return Err(format!(
                "the table {} has schema version {version}, made by a newer release; this build knows version \
                 {VERSION}: update `idem-runtime`",
                table.quoted("")
            ));
        }
        if self.columns.is_empty() {
            return Ok(false);
        }
        self.check_columns(table, wanted)?;
        if !self.key_is_unique {
            return Err(format!(
                "the table {} has no primary key or unique index on `key` alone, so claims could not exclude each \
                 other; add one",
                table.quoted("")
            ));
        }
        Ok(self.version.is_some() && self.audited)
    }

    fn check_columns(&self, table: &Table, wanted: &[Column]) -> Result<(), String> {
        let name = table.quoted("");
        let found = |column: &Column| self.columns.iter().find(|found| found.name == column.name);
        let missing: Vec<_> = wanted.iter().filter(|column| found(column).is_none()).collect();
        if let Some(column) = missing.iter().find(|column| column.ddl.is_none()) {
            return Err(format!(
                "the table {name} is not one of idempotency keys: it has no column `{}`; choose another name for ours",
                column.name
            ));
        }
        if !missing.is_empty() {
            let mut text = format!("the table {name} lacks columns; run");
            for column in missing {
                let ddl = column.ddl.unwrap_or_default();
                let _ = write!(text, "\nALTER TABLE {name} ADD COLUMN {} {ddl};", column.name);
            }
            return Err(text);
        }
        for column in wanted {
            if let Some(found) =
                found(column).filter(|found| !column.types.contains(&found.type_name.as_str()))
            {
                return Err(format!(
                    "column `{}` of {name} has type `{}`; it must be `{}`",
                    column.name,
                    found.type_name,
                    column.types.join("` or `")
                ));
            }
        }
        Ok(())
    }
}

/// What to say where the table is missing and is not ours to make.
pub(crate) fn missing(table: &Table) -> String {
    format!(
        "the table {} is missing or incomplete, and migrations are off; run the statements of `Idem::ddl()` (without \
         a connection: `Idem::builder().url(…).ddl()`; they stand in `idem-runtime/migrations/`) or allow \
         `migrate(true)`",
        table.quoted("")
    )
}
