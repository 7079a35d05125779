//! Macros of the user's whose names equal those of the standard library.

use idem_runtime::{Error, KeyPart, idempotent};

use super::{memory, once, once_sync};

macro_rules! not_ours {
    ($($name:ident)*) => {$(
        #[allow(unused_macros)]
        macro_rules! $name {
            ($d:tt) => {
                compile_error!("the user's own macro was expanded")
            };
            () => {
                compile_error!("the user's own macro was expanded")
            };
        }
    )*};
}

not_ours! {
    format vec matches concat line file column module_path panic unreachable todo assert debug_assert write
    stringify env cfg println include_str
}

#[derive(KeyPart)]
struct Id {
    number: u8,
    text: &'static str,
}

#[derive(KeyPart)]
enum Kind {
    New,
}

#[idempotent(key = "own_macros:async:<id>:<kind>", key_fn = async_key, fingerprint = (extra), idem = memory())]
async fn job(id: Id, kind: Kind, extra: u8) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    let Kind::New = kind;
    Ok(id.number + extra)
}

#[idempotent(key = "own_macros:sync:<id>", on_error = "record", idem = memory())]
fn sync(id: u8) -> Result<u8, Error> {
    Ok(id)
}

/// A macro of the body's own, named like one of the library's.
#[idempotent(key = "own_macros:local:<id>", idem = memory())]
async fn local(id: u8) -> Result<u8, Error> {
    macro_rules! format {
        ($number:expr) => {
            $number + 1
        };
    }
    macro_rules! vec {
        ($($number:expr),*) => {
            0 $(+ $number)*
        };
    }
    macro_rules! matches {
        () => {
            4
        };
    }
    let sum = vec![id, format!(id)];
    tokio::task::yield_now().await;
    Ok(sum + matches!())
}

#[tokio::test]
async fn b2_macros_of_the_users_are_not_ours() {
    let call = async || job(Id { number: 1, text: "t" }, Kind::New, 2).await;
    assert_eq!(once(call).await, 3);
    let key = async_key(&Id { number: 1, text: "t" }, &Kind::New).expect("a key");
    assert_eq!(key.to_string(), "own_macros:async:1,t:New");
    assert_eq!(once_sync(|| sync(1)), 1);
    assert_eq!(once(async || local(1).await).await, 7);
}
