//! `on_stale = probe(…)` of a phase: closures and paths, over what the body takes as well.

use idem_runtime::{Error, OnError, Probe, idempotent, phase};
use tokio::task::yield_now;

use super::{is_send, memory, once};

async fn find(id: u8) -> Probe<String> {
    yield_now().await;
    Probe::Happened(id.to_string())
}

async fn find_none() -> Probe<String> {
    yield_now().await;
    Probe::DidNotHappen
}

fn judge(_: &anyhow::Error) -> OnError {
    OnError::Hold
}

#[idempotent(key = "phases_probes:asks:<id>", idem = memory())]
async fn asks(id: u8, mut names: Vec<String>) -> anyhow::Result<usize> {
    phase!("closure", on_stale = probe(async || find(id).await), async {
        names.push(id.to_string());
        Ok(id.to_string())
    });
    // What the probe reads, the body changes.
    phase!("reads", on_stale = probe(async || Probe::Happened(names.len())), on_error = judge, async {
        names.push(String::new());
        Ok(names.len())
    });
    phase!("path", on_stale = probe(find_none), async { Ok(String::new()) });
    phase!("typed", stale_after = "30s", on_stale = probe(async || -> Probe<u8> { Probe::Unknown }), async {
        Ok(1)
    });
    phase!(
        "block",
        on_stale = probe(async move || {
            yield_now().await;
            if id > 3 {
                return Probe::Happened(id);
            }
            Probe::DidNotHappen
        }),
        async move { Ok(id) }
    );
    Ok(names.len())
}

struct Service(u8);

impl Service {
    async fn was_charged(&self, id: u8) -> Probe<u8> {
        yield_now().await;
        Probe::Happened(self.0 + id)
    }

    #[idempotent(key = "phases_probes:method:<id>", idem = memory())]
    async fn charge(&mut self, id: u8) -> Result<u8, Error> {
        let charged = phase!("charge", on_stale = probe(async || self.was_charged(id).await), async {
            self.0 += id;
            Ok(self.0)
        });
        Ok(charged)
    }
}

#[tokio::test]
async fn a_phase_with_a_probe_runs_once() {
    assert_eq!(once(async || is_send(asks(7, Vec::new())).await).await, 2);
    assert_eq!(once(async || is_send(Service(1).charge(2)).await).await, 3);
}
