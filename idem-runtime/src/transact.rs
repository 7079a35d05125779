//! The typed shell of a `transactional` call: its three steps around the body, and what can be its transaction.

use std::{any::type_name, fmt, ops::ControlFlow};

use sqlx_core::{database::Database, transaction::Transaction as SqlxTransaction};

use crate::{
    call::{Call, Edge},
    job::OnError,
    run::{self, Ending, Enlist, Execution},
    store::{
        Store,
        transaction::{Savepoint, Transaction},
    },
};

/// What a `transactional` job can run in: a transaction of sqlx, or a connection on which one is open.
#[diagnostic::on_unimplemented(
    message = "a `transactional` job cannot run in `{Self}`",
    label = "not a transaction of sqlx 0.9, and not a connection of Postgres, MySQL or SQLite",
    note = "write `tx: &mut sqlx::Transaction<'_, sqlx::Postgres>` (or `sqlx::MySql`, `sqlx::Sqlite`), with the \
            feature of that database switched on in `idem-runtime`"
)]
pub trait Transact: Send {
    /// The rows of a store, as the transaction sees them.
    #[doc(hidden)]
    fn enlist<'a>(
        &'a mut self,
        store: &'a dyn Store,
        savepoint: &'a mut Savepoint,
    ) -> Option<Box<dyn Transaction + 'a>>;

    /// Has the savepoint undone before anything else is done.
    #[doc(hidden)]
    fn abandon(&mut self, savepoint: &Savepoint);

    /// What it is, for a message.
    #[doc(hidden)]
    fn describe() -> &'static str;
}

/// A database whose transactions a job can run in.
#[diagnostic::on_unimplemented(
    message = "a `transactional` job cannot run in a transaction of `{Self}`",
    label = "not a database of `idem-runtime`",
    note = "the databases are `sqlx::Postgres`, `sqlx::MySql` and `sqlx::Sqlite`, each with its feature switched on in \
            `idem-runtime`"
)]
pub trait TransactDatabase: Database {
    #[doc(hidden)]
    fn enlist<'a>(
        connection: &'a mut Self::Connection,
        store: &'a dyn Store,
        savepoint: &'a mut Savepoint,
    ) -> Option<Box<dyn Transaction + 'a>>;

    #[doc(hidden)]
    fn abandon(connection: &mut Self::Connection, savepoint: &Savepoint);
}

impl<DB: TransactDatabase> Transact for SqlxTransaction<'_, DB> {
    fn enlist<'a>(
        &'a mut self,
        store: &'a dyn Store,
        savepoint: &'a mut Savepoint,
    ) -> Option<Box<dyn Transaction + 'a>> {
        DB::enlist(self, store, savepoint)
    }

    fn abandon(&mut self, savepoint: &Savepoint) {
        DB::abandon(self, savepoint);
    }

    fn describe() -> &'static str {
        DB::NAME
    }
}

/// A connection by itself, where a transaction is open on it.
macro_rules! connection {
    ($feature:literal, $database:ty, $connection:ty) => {
        #[cfg(feature = $feature)]
        #[diagnostic::do_not_recommend]
        impl Transact for $connection {
            fn enlist<'a>(
                &'a mut self,
                store: &'a dyn Store,
                savepoint: &'a mut Savepoint,
            ) -> Option<Box<dyn Transaction + 'a>> {
                <$database>::enlist(self, store, savepoint)
            }

            fn abandon(&mut self, savepoint: &Savepoint) {
                <$database>::abandon(self, savepoint);
            }

            fn describe() -> &'static str {
                <$database>::NAME
            }
        }
    };
}

connection!("mysql", sqlx::MySql, sqlx::MySqlConnection);
connection!("postgres", sqlx::Postgres, sqlx::PgConnection);
connection!("sqlite", sqlx::Sqlite, sqlx::SqliteConnection);

/// The caller's transaction while a job runs in it. Dropping it undoes what the job did so far.
pub struct Guard<'t, X: ?Sized> {
    tx: &'t mut X,
    savepoint: Savepoint,
    wire: Wire<X>,
}

/// What is to be done with the transaction, as plain functions: so that nothing but their making has a bound, and a
/// type that is no transaction is told of once.
struct Wire<X: ?Sized> {
    enlist: for<'a, 't> fn(&'a mut Guard<'t, X>) -> &'a mut (dyn Enlist + 'a),
    abandon: fn(&mut X, &Savepoint),
}

/// Takes the transaction, before anything is done in it.
pub fn tx_guard<X: Transact + ?Sized>(tx: &mut X) -> Guard<'_, X> {
    Guard { tx, savepoint: Savepoint::default(), wire: Wire { enlist: |guard| guard, abandon: X::abandon } }
}

impl<X: ?Sized> Guard<'_, X> {
    /// The transaction, for the body.
    pub fn tx(&mut self) -> &mut X {
        self.tx
    }

    fn enlist(&mut self) -> &mut dyn Enlist {
        (self.wire.enlist)(self)
    }
}

impl<X: Transact + ?Sized> Enlist for Guard<'_, X> {
    fn transaction<'a>(&'a mut self, store: &'a dyn Store) -> Option<Box<dyn Transaction + 'a>> {
        self.tx.enlist(store, &mut self.savepoint)
    }

    fn describe(&self) -> &'static str {
        X::describe()
    }
}

impl<X: ?Sized> Drop for Guard<'_, X> {
    fn drop(&mut self) {
        (self.wire.abandon)(self.tx, &self.savepoint);
    }
}

impl<X: ?Sized> fmt::Debug for Guard<'_, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("savepoint", &self.savepoint).finish_non_exhaustive()
    }
}

/// A call whose claim is made.
#[must_use]
pub struct Begun<R, E> {
    execution: Box<Execution>,
    edge: Edge<R, E>,
}

/// A call whose body has ended.
#[must_use]
pub struct Ended<R, E> {
    execution: Box<Execution>,
    edge: Edge<R, E>,
    returned: R,
    ending: Ending,
}

impl<R, E> fmt::Debug for Begun<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").finish_non_exhaustive()
    }
}

impl<R, E> fmt::Debug for Ended<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ended").finish_non_exhaustive()
    }
}

/// Opens the savepoint and makes the claim, or answers the call.
///
/// The type of `place` tells where the function stands, as that of the body's closure does for other modes.
pub async fn tx_begin<R, T, E, X: ?Sized, P>(
    call: Call<R, T, E>,
    guard: &mut Guard<'_, X>,
    _place: P,
) -> ControlFlow<R, Begun<R, E>> {
    let Call { ticket, edge, .. } = call;
    let admission = Box::pin(run::begin(*ticket, type_name::<P>(), guard.enlist())).await;
    match edge.answer(admission) {
        Ok(execution) => ControlFlow::Continue(Begun { execution, edge }),
        Err(answer) => ControlFlow::Break(answer),
    }
}

/// Runs the body.
pub fn tx_body<R, E, B>(begun: Begun<R, E>, body: B) -> impl Future<Output = Ended<R, E>>
where
    B: AsyncFnOnce() -> R,
{
    attend(begun, |_| None, Box::pin(body()))
}

/// `tx_body` with a function that judges the error.
pub fn tx_body_classified<R, E, B>(
    begun: Begun<R, E>,
    classify: impl FnOnce(&E) -> OnError,
    body: B,
) -> impl Future<Output = Ended<R, E>>
where
    B: AsyncFnOnce() -> R,
{
    attend(begun, |error| Some(classify(error)), Box::pin(body()))
}

pub(crate) async fn attend<R, E>(
    begun: Begun<R, E>,
    classify: impl FnOnce(&E) -> Option<OnError>,
    body: std::pin::Pin<Box<impl Future<Output = R>>>,
) -> Ended<R, E> {
    let Begun { mut execution, edge } = begun;
    let returned = execution.attend_inside(body).await;
    let (returned, ending) = edge.ending(returned, classify);
    Ended { execution, edge, returned, ending }
}

/// Completes the claim and releases the savepoint, or undoes all.
pub async fn tx_end<R, E, X: ?Sized>(ended: Ended<R, E>, mut guard: Guard<'_, X>) -> R {
    let Ended { execution, edge, returned, ending } = ended;
    match Box::pin(run::end(execution, ending, guard.enlist())).await {
        Ok(()) => returned,
        Err(error) => {
            drop(returned);
            (edge.refuse)(error)
        }
    }
}
