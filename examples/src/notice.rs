use std::{io, time::Duration};

use idem_runtime::Idem;
use tokio::{sync::watch, time::Instant};

/// Notice to leave, as a deploy gives it (SIGTERM) or somebody at the terminal (Ctrl-C).
#[derive(Debug, Clone)]
pub struct Notice(watch::Receiver<Stage>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    None,
    Given,
    Over,
}

impl Notice {
    /// Listens for notice. Once it is given, no key is claimed any more, and the jobs that run get so long to end; their
    /// completions are recorded, and their leases renewed all the while.
    ///
    /// # Errors
    ///
    /// The process cannot listen to signals.
    pub fn to(idem: &Idem, deadline: Duration) -> io::Result<Self> {
        let (tell, stage) = watch::channel(Stage::None);
        let (idem, given) = (idem.clone(), signal()?);
        tokio::spawn(async move {
            given.await;
            // Whoever listens no more has left already.
            let _ = tell.send(Stage::Given);
            let over = Instant::now() + deadline;
            for key in idem.shutdown(deadline).await {
                eprintln!("left behind while it ran: {key}");
            }
            // A job that is recorded has yet to return.
            tokio::time::sleep_until(over).await;
            let _ = tell.send(Stage::Over);
        });
        Ok(Self(stage))
    }

    /// Whether it was given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        *self.0.borrow() >= Stage::Given
    }

    /// Resolves when the time that the jobs were given is over.
    pub async fn is_over(&mut self) {
        if self.0.wait_for(|stage| *stage == Stage::Over).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
fn signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn signal() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
