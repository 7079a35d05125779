//! Futures are `Send` exactly where the plain function's is: each job has a plain twin beside it.

#![allow(clippy::arc_with_non_send_sync)]

use std::{cell::Cell, rc::Rc, sync::Arc};

use idem_runtime::{Error, KeyPart, Probe, Transact, idempotent};
use sqlx::{Connection, Executor, Sqlite, SqliteConnection, Transaction};

use super::memory;

/// Answers whether the value's type is `Send`, without asking for it: an inherent constant wins over a trait's.
macro_rules! is_send {
    ($value:expr) => {{
        struct Probe<T>(std::marker::PhantomData<T>);
        #[allow(dead_code)]
        trait Otherwise {
            fn answer(&self) -> bool {
                false
            }
        }
        impl<T> Otherwise for Probe<T> {}
        impl<T: Send> Probe<T> {
            #[allow(dead_code)]
            fn answer(&self) -> bool {
                true
            }
        }
        fn probe<T>(_: &T) -> Probe<T> {
            Probe(std::marker::PhantomData)
        }
        probe(&$value).answer()
    }};
}

/// One body twice: `plain` as it is, `job` under the attribute.
macro_rules! twins {
    ($name:ident, $key:literal, probe($probe:ident), ($($params:tt)*) $body:block) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            #[allow(clippy::unused_async)]
            pub(super) async fn plain($($params)*) -> Result<u8, Error> $body
            #[idempotent(key = $key, on_stale = probe($probe), idem = memory())]
            pub(super) async fn job($($params)*) -> Result<u8, Error> $body
        }
    };
    ($name:ident, $key:literal $(, $tx:ident)?, ($($params:tt)*) $body:block) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            #[allow(clippy::unused_async)]
            pub(super) async fn plain($($params)*) -> Result<u8, Error> $body
            #[idempotent(key = $key, $(mode = "transactional", tx = $tx,)? idem = memory())]
            pub(super) async fn job($($params)*) -> Result<u8, Error> $body
        }
    };
}

/// Asks both twins.
macro_rules! same {
    ($name:ident, $send:literal, $($args:expr),*) => {
        assert_eq!(is_send!($name::plain($($args),*)), $send, "plain {}", stringify!($name));
        assert_eq!(is_send!($name::job($($args),*)), $send, "job {}", stringify!($name));
    };
}

/// A key part that is `Send` and not `Sync`.
struct NotSync(Cell<u8>);

impl KeyPart for NotSync {
    fn write(&self, out: &mut idem_runtime::KeyWriter) {
        out.write_display(&self.0.get());
    }
}

twins!(owned, "send:owned:<id>", (id: u8) {
    tokio::task::yield_now().await;
    Ok(id)
});
twins!(borrowed, "send:borrowed:<id>", (id: &str) {
    tokio::task::yield_now().await;
    Ok(u8::from(id.is_empty()))
});
twins!(shared, "send:shared:<id>", (id: u8, shared: Arc<Cell<u8>>) {
    tokio::task::yield_now().await;
    Ok(id + shared.get())
});
twins!(not_sync, "send:not_sync:<id>", (id: NotSync) {
    tokio::task::yield_now().await;
    Ok(id.0.get())
});
twins!(counted, "send:counted:<id>", (id: u8, counted: Rc<u8>) {
    tokio::task::yield_now().await;
    Ok(id + *counted)
});
twins!(held, "send:held:<id>", (id: u8) {
    let held = Rc::new(id);
    tokio::task::yield_now().await;
    Ok(*held)
});
twins!(dropped, "send:dropped:<id>", (id: u8) {
    let value = *Rc::new(id);
    tokio::task::yield_now().await;
    Ok(value)
});
twins!(object, "send:object:<id>", (id: u8, object: Box<dyn Fn() -> u8>) {
    tokio::task::yield_now().await;
    Ok(id + object())
});
twins!(exclusive, "send:exclusive:<id>", (id: u8, out: &mut Vec<u8>) {
    out.push(id);
    tokio::task::yield_now().await;
    Ok(id)
});
twins!(inside, "send:inside:<id>", tx, (id: NotSync, tx: &mut Transaction<'_, Sqlite>) {
    tx.execute("SELECT 1").await.ok();
    Ok(id.0.get())
});
twins!(inside_shared, "send:inside_shared:<id>", tx, (id: u8, shared: Arc<Cell<u8>>, tx: &mut SqliteConnection) {
    tx.ping().await.ok();
    Ok(id + shared.get())
});
twins!(inside_held, "send:inside_held:<id>", tx, (id: u8, tx: &mut SqliteConnection) {
    let held = Rc::new(id);
    tx.ping().await.ok();
    Ok(*held)
});
twins!(inside_dropped, "send:inside_dropped:<id>", tx, (id: u8, mut tx: &mut SqliteConnection) {
    let value = *Rc::new(id);
    tx = &mut *tx;
    tx.ping().await.ok();
    Ok(value)
});
twins!(inside_anything, "send:inside_anything:<id>", tx, (id: u8, tx: &mut impl Transact) {
    tokio::task::yield_now().await;
    let _ = tx;
    Ok(id)
});

async fn finds<K: ?Sized>(_: &K) -> Probe<u8> {
    tokio::task::yield_now().await;
    Probe::Unknown
}

async fn finds_on_its_thread<K>(_: &K) -> Probe<u8> {
    let held = Rc::new(1);
    tokio::task::yield_now().await;
    Probe::Happened(*held)
}

twins!(asked, "send:asked:<id>", probe(finds), (id: u8, exclusive: &mut Vec<u8>) {
    exclusive.push(id);
    tokio::task::yield_now().await;
    Ok(id)
});
twins!(asked_by_name, "send:asked_by_name:<id>", probe(finds), (id: &str) {
    tokio::task::yield_now().await;
    Ok(u8::from(id.is_empty()))
});
twins!(asked_for_a_key_alone, "send:asked_for_a_key_alone:<id>", probe(finds), (id: u8, shared: &'static str, cell: Cell<u8>) {
    tokio::task::yield_now().await;
    Ok(id + cell.get() + u8::from(shared.is_empty()))
});
twins!(asked_and_shared, "send:asked_and_shared:<id>", probe(finds), (id: u8, shared: Arc<Cell<u8>>) {
    tokio::task::yield_now().await;
    Ok(id + shared.get())
});
twins!(asked_and_not_sync, "send:asked_and_not_sync:<id>", probe(finds), (id: NotSync) {
    tokio::task::yield_now().await;
    Ok(id.0.get())
});
twins!(asked_on_its_thread, "send:asked_on_its_thread:<id>", probe(finds_on_its_thread), (id: u8) {
    tokio::task::yield_now().await;
    Ok(id)
});

#[test]
fn a_future_that_asks_is_send_where_its_key_can_be_shared_and_its_probe_is_send() {
    same!(asked, true, 1, &mut Vec::new());
    same!(asked_by_name, true, "x");
    same!(asked_for_a_key_alone, true, 1, "x", Cell::new(1));
    same!(asked_and_shared, false, 1, Arc::new(Cell::new(1)));
    assert!(is_send!(asked_and_not_sync::plain(NotSync(Cell::new(1)))));
    assert!(!is_send!(asked_and_not_sync::job(NotSync(Cell::new(1)))), "its probe borrows the key");
    assert!(is_send!(asked_on_its_thread::plain(1)));
    assert!(!is_send!(asked_on_its_thread::job(1)));
}

#[test]
fn futures_are_send_exactly_where_the_plain_ones_are() {
    same!(owned, true, 1);
    same!(borrowed, true, "x");
    same!(shared, false, 1, Arc::new(Cell::new(1)));
    same!(not_sync, true, NotSync(Cell::new(1)));
    same!(counted, false, 1, Rc::new(1));
    same!(held, false, 1);
    same!(dropped, true, 1);
    same!(object, false, 1, Box::new(|| 1));
    same!(exclusive, true, 1, &mut Vec::new());
}

#[tokio::test]
async fn futures_in_a_transaction_are_send_exactly_where_the_plain_ones_are() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("a connection");
    let mut transaction = connection.begin().await.expect("a transaction");
    let tx = &mut transaction;
    same!(inside, true, NotSync(Cell::new(1)), tx);
    same!(inside_shared, false, 1, Arc::new(Cell::new(1)), tx);
    same!(inside_held, false, 1, tx);
    same!(inside_dropped, true, 1, tx);
    same!(inside_anything, true, 1, tx);
}
