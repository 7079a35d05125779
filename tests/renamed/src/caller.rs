use jobs::{Error, Idem, current, idempotent};

/// Holds the handle that its job uses.
#[derive(Clone, Debug)]
pub struct Caller {
    idem: Idem,
}

impl Caller {
    /// With this handle.
    #[must_use]
    pub fn new(idem: Idem) -> Self {
        Self { idem }
    }

    /// Tells its key.
    ///
    /// # Errors
    ///
    /// When it is refused.
    #[idempotent(key = "renamed:charge:<id>", idem = self.idem, crate = jobs)]
    pub async fn charge(&self, id: u64) -> Result<String, Error> {
        let _ = id;
        Ok(current().key().to_string())
    }
}
