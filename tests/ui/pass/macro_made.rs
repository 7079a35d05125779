//! Functions that a `macro_rules!` writes, with fragments of every kind.

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

macro_rules! job {
    ($(#[$meta:meta])* $vis:vis $name:ident($id:ident: $ty:ty) -> $ret:ty, $key:literal, $body:block) => {
        $(#[$meta])*
        #[idempotent(key = $key, idem = memory())]
        $vis async fn $name($id: $ty) -> $ret $body
    };
}

job! {
    /// Doubles.
    pub(super) doubled(id: u8) -> Result<u8, Error>, "macro_made:doubled:<id>", { Ok(id * 2) }
}

macro_rules! fixed {
    ($name:ident) => {
        #[idempotent(key = "macro_made:fixed:<id>", key_fn = fixed_key, idem = memory())]
        fn $name(id: u8) -> Result<u8, Error> {
            Ok(id)
        }
    };
}

fixed!(fixed);

macro_rules! keyed_by_caller {
    ($id:ident, $key:literal) => {
        #[idempotent(key = $key, fingerprint = (extra), idem = memory())]
        fn keyed($id: u8, extra: u8) -> Result<u8, Error> {
            Ok($id + extra)
        }
    };
}

keyed_by_caller!(number, "macro_made:keyed:<number>");

macro_rules! with_crate {
    ($name:ident) => {
        #[$crate::pass::facade::idempotent(key = "macro_made:crate:<id>", crate = $crate::pass::facade, idem = memory())]
        fn $name(id: u8) -> Result<u8, Error> {
            Ok(id)
        }
    };
}

with_crate!(through_crate);

#[tokio::test]
async fn functions_from_macros_run_once() {
    assert_eq!(once(async || doubled(2).await).await, 4);
    assert_eq!(once_sync(|| fixed(2)), 2);
    assert_eq!(fixed_key(&2).expect("a key").to_string(), "macro_made:fixed:2");
    assert_eq!(once_sync(|| keyed(2, 3)), 5);
    assert_eq!(once_sync(|| through_crate(2)), 2);
}
