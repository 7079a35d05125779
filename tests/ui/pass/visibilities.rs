//! `pub`, and how far.

#![allow(clippy::needless_pub_self)]

use super::{memory, once_sync};

mod deep {
    pub(in crate::pass) mod deeper {
        use idem_runtime::{Error, idempotent};

        use super::super::memory;

        #[idempotent(key = "visibilities:in_path:<id>", key_fn = in_path_key, idem = memory())]
        pub(in crate::pass) fn in_path(id: u8) -> Result<u8, Error> {
            Ok(id)
        }

        #[idempotent(key = "visibilities:in_super:<id>", key_fn = in_super_key, idem = memory())]
        pub(in super::super) fn in_super(id: u8) -> Result<u8, Error> {
            Ok(id)
        }

        #[idempotent(key = "visibilities:in_crate:<id>", key_fn = in_crate_key, idem = memory())]
        pub(crate) fn in_crate(id: u8) -> Result<u8, Error> {
            of_module(id)
        }

        #[idempotent(key = "visibilities:of_module:<id>", idem = memory())]
        pub(self) fn of_module(id: u8) -> Result<u8, Error> {
            Ok(id + 1)
        }
    }
}

#[test]
fn b11_a_job_is_as_visible_as_its_function() {
    use deep::deeper::{in_crate, in_crate_key, in_path, in_path_key, in_super, in_super_key};
    assert_eq!(once_sync(|| in_path(1)), 1);
    assert_eq!(once_sync(|| in_super(1)), 1);
    assert_eq!(once_sync(|| in_crate(1)), 2);
    for (key, text) in [
        (in_path_key(&1), "visibilities:in_path:1"),
        (in_super_key(&1), "visibilities:in_super:1"),
        (in_crate_key(&1), "visibilities:in_crate:1"),
    ] {
        assert_eq!(key.expect("a key").to_string(), text);
    }
    assert_eq!(once_sync(|| outside::anywhere(1)), 1);
}

mod outside {
    use idem_runtime::{Error, idempotent};

    use super::memory;

    #[idempotent(key = "visibilities:anywhere:<id>", idem = memory())]
    #[allow(unreachable_pub)]
    pub fn anywhere(id: u8) -> Result<u8, Error> {
        Ok(id)
    }
}
