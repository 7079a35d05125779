use std::io::{self, IsTerminal as _, Write};

use indicatif::{ProgressBar, ProgressStyle};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

/// Standard error: log lines and, on a terminal, a progress bar that they do not tear.
#[derive(Debug, Clone)]
pub struct Terminal(ProgressBar);

impl Terminal {
    /// Takes over standard error. `RUST_LOG` chooses what is logged.
    #[must_use]
    pub fn open() -> Self {
        let terminal = Self(ProgressBar::hidden());
        let filter = EnvFilter::try_from_default_env()
            .unwrap_or_else(|_| EnvFilter::new("warn,idem_runtime::idem=info"));
        // It fails where a subscriber is set already, which is as good.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_writer(terminal.clone())
            .try_init();
        terminal
    }

    pub(crate) fn begin(&self, deliveries: u64) {
        self.0.set_length(deliveries);
        if io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} deliveries");
            self.0.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            self.0.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        }
    }

    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }

    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl MakeWriter<'_> for Terminal {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
