use jobs::{Error, Idem, current, idempotent, phase};

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

    /// Tells the key of its phase.
    ///
    /// # Errors
    ///
    /// When it is refused.
    #[idempotent(key = "renamed:charge_once:<id>", idem = self.idem, crate = jobs)]
    pub async fn charge_once(&self, id: u64) -> Result<String, Error> {
        let _ = id;
        Ok(phase!("charge", async { Ok(current().key().to_string()) }))
    }
}
