use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Result, ensure};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether somebody asked this process to end. Nothing ends by itself: whoever waits looks here, so that every
/// guard is dropped on the way out and no server stays behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes over ctrl-c and the polite ways to end a process.
    pub(crate) fn listen() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        Ok(interrupt)
    }

    pub(crate) fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn ensure_none(&self) -> Result<()> {
        ensure!(!self.raised(), "interrupted");
        Ok(())
    }
}
