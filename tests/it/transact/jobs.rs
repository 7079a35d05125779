//! The jobs of most cases.

use idem_runtime::idempotent;
use sqlx::{Connection, Transaction};

use super::{dialect::Dialect, stage::put};
use crate::cases::{call::Fault, gate::Gate, site::Worker};

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Own(error.to_string())
    }
}

/// Writes a row of the name of its id.
#[idempotent(key = "job:<id>", mode = "transactional", idem = w.idem)]
pub(super) async fn job<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
) -> Result<String, Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    Ok(format!("did {id}"))
}

/// Writes a row and waits in the middle of it.
#[idempotent(key = "gated:<id>", mode = "transactional", idem = w.idem)]
pub(super) async fn gated<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    gate: &Gate,
) -> Result<String, Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    gate.pass().await;
    Ok(format!("did {id}"))
}

/// Writes a row and fails for good.
#[idempotent(key = "recorded:<id>", mode = "transactional", on_error = "record", idem = w.idem)]
pub(super) async fn recorded<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
) -> Result<String, Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    Err(Fault::own("it never will"))
}

/// Writes a row, and one more in a transaction inside of its own.
#[idempotent(key = "nesting:<id>", mode = "transactional", idem = w.idem)]
pub(super) async fn nesting<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
) -> Result<String, Fault> {
    w.effect(id);
    let mut inner = Connection::begin(&mut **tx).await?;
    put::<DB>(&mut inner, id).await?;
    inner.commit().await?;
    let mut inner = Connection::begin(&mut **tx).await?;
    put::<DB>(&mut inner, "undone").await?;
    inner.rollback().await?;
    Ok(format!("did {id}"))
}
