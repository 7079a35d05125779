//! Functions that a `macro_rules!` writes by way of another.

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync, this_key};

macro_rules! inner {
    ($(#[$meta:meta])* $vis:vis $name:ident($id:ident: $ty:ty) -> $ret:ty, $key:literal, $body:block) => {
        $(#[$meta])*
        #[idempotent(key = $key, key_fn = rendered, idem = memory())]
        $vis async fn $name($id: $ty) -> $ret $body
    };
}

macro_rules! outer {
    ($module:ident, $key:literal, $ty:ty, $body:block) => {
        mod $module {
            #[allow(clippy::wildcard_imports)]
            use super::*;

            inner! {
                /// Of two layers.
                pub(super) run(id: $ty) -> Result<String, Error>, $key, {
                    let _ = id;
                    tokio::task::yield_now().await;
                    $body
                }
            }
        }
    };
}

outer!(first, "macro_layers:first:<id>", u8, {
    let key = this_key();
    Ok(key)
});
outer!(second, "macro_layers:second:<id>", &str, {
    let key = this_key();
    Ok(format!("{key}!"))
});

/// The parameter's name is the inner macro's, the key the outer one's caller's.
macro_rules! named_inside {
    ($name:ident, $key:literal, $($body:tt)*) => {
        passed_on! { $name, id, $key, { $($body)* } }
    };
}

macro_rules! passed_on {
    ($name:ident, $id:ident, $key:literal, $body:block) => {
        #[idempotent(key = $key, fingerprint = ($id), idem = memory())]
        fn $name($id: u8, tenant: &str) -> Result<u8, Error> {
            let _ = tenant;
            let more: u8 = $body;
            Ok($id + more)
        }
    };
}

named_inside!(named_inside, "macro_layers:named:<tenant>", let n = 3; n * 2);

/// A macro that writes the macro.
macro_rules! maker {
    ($made:ident, $prefix:literal) => {
        macro_rules! $made {
            ($name:ident, $tail:expr) => {
                #[idempotent(key = $prefix, idem = memory())]
                fn $name(id: u8) -> Result<String, Error> {
                    let _ = id;
                    $tail
                }
            };
        }
    };
}

maker!(made, "macro_layers:made:<id>");
made!(written, Ok(this_key()));

#[tokio::test]
async fn functions_of_two_layers_run_once() {
    assert_eq!(once(async || first::run(1).await).await, "macro_layers:first:1");
    assert_eq!(once(async || second::run("a").await).await, "macro_layers:second:a!");
    assert_eq!(first::rendered(&1).expect("a key").to_string(), "macro_layers:first:1");
    assert_eq!(second::rendered("a").expect("a key").to_string(), "macro_layers:second:a");
    assert_eq!(once_sync(|| named_inside(1, "t")), 7);
    assert!(matches!(named_inside(2, "t"), Err(Error::FingerprintMismatch { .. })));
    assert_eq!(once_sync(|| written(1)), "macro_layers:made:1");
}
