//! The runtime under other names: a facade, a glob, a rename.

use super::{memory, once_sync};

mod facade {
    pub(super) mod jobs {
        pub(in super::super) use idem_runtime::*;
    }
}

use idem_runtime as renamed;

#[facade::jobs::idempotent(key = "renamed:facade:<id>", key_fn = facade_key, crate = self::facade::jobs, idem = memory())]
fn by_facade(id: u8) -> Result<u8, facade::jobs::Error> {
    Ok(id)
}

#[renamed::idempotent(key = "renamed:renamed:<id>", crate = renamed, idem = memory())]
fn by_rename(id: Id) -> Result<u8, renamed::Error> {
    Ok(id.0)
}

#[renamed::idempotent(key = "renamed:root:<id>", crate = crate::pass::facade, idem = memory())]
fn by_root(id: u8) -> Result<u8, renamed::Error> {
    Ok(id)
}

#[derive(Clone, Copy, renamed::KeyPart)]
#[key_part(crate = renamed)]
struct Id(u8);

#[test]
fn the_runtime_is_found_under_other_names() {
    assert_eq!(once_sync(|| by_facade(1)), 1);
    assert_eq!(once_sync(|| by_rename(Id(1))), 1);
    assert_eq!(once_sync(|| by_root(1)), 1);
    assert!(facade_key(&1).is_ok());
}
