//! Everything of the runtime at once, by `*`, and through a re-export of that.

use super::{memory, once, once_sync};

mod prelude {
    pub(super) use idem_runtime::*;
}

mod direct {
    #[allow(clippy::wildcard_imports)]
    use idem_runtime::*;

    use super::memory;

    #[idempotent(key = "glob_import:direct:<id>", key_fn = direct_key, idem = memory())]
    pub(super) async fn direct(id: Id) -> Result<u8, Error> {
        Ok(id.0)
    }

    #[derive(Clone, Copy, KeyPart)]
    pub(super) struct Id(pub(super) u8);

    pub(super) fn rendered(id: Id) -> Result<Key, Error> {
        direct_key(&id)
    }
}

mod through {
    #[allow(clippy::wildcard_imports)]
    use super::prelude::*;

    use super::memory;

    #[idempotent(key = "glob_import:through:<id>", crate = super::prelude, idem = memory())]
    pub(super) fn through(id: u8) -> Result<u8, Error> {
        Ok(id)
    }

    #[idempotent(key = "glob_import:through_root:<id>", crate = ::idem_runtime, idem = memory())]
    pub(super) fn through_root(id: u8) -> Result<u8, Error> {
        Ok(id)
    }
}

#[tokio::test]
async fn the_runtime_is_found_by_a_glob() {
    assert_eq!(once(async || direct::direct(direct::Id(1)).await).await, 1);
    assert_eq!(direct::rendered(direct::Id(1)).expect("a key").to_string(), "glob_import:direct:1");
    assert_eq!(once_sync(|| through::through(1)), 1);
    assert_eq!(once_sync(|| through::through_root(1)), 1);
}
