//! The jobs of phases: in each, the phase that acts has another policy. Another one stands behind it.

use idem_runtime::{Probe, current, idempotent, phase};

use super::super::{
    jobs::Call,
    play::ITSELF,
    stop::{Stop, here},
};
use crate::{
    cases::{call::Fault, site::Worker},
    transact::{dialect::Dialect, stage::put},
};

#[idempotent(key = "deaths-phase-alert:<id>", on_stale = "retry", idem = w.idem)]
pub(in super::super) async fn alert(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    let name: String = phase!("act", async { call.runs() });
    goes_on(name).await
}

#[idempotent(key = "deaths-phase-probe:<id>", on_stale = "retry", idem = w.idem)]
pub(in super::super) async fn probe(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    let find = async || {
        assert!(current().key().as_str().ends_with("/act"));
        if w.effects(id) == 0 { Probe::DidNotHappen } else { Probe::Happened(ITSELF.to_owned()) }
    };
    let name: String = phase!("act", on_stale = probe(find), async { call.runs() });
    goes_on(name).await
}

#[idempotent(key = "deaths-phase-retry:<id>", on_stale = "retry", idem = w.idem)]
pub(in super::super) async fn retry(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    let name: String = phase!("act", on_stale = "retry", async { call.runs() });
    goes_on(name).await
}

#[idempotent(key = "deaths-phase-after:<id>", on_stale = "retry", idem = w.idem)]
pub(in super::super) async fn after(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    let name: String = phase!("act", mode = "record_after", async { call.runs() });
    goes_on(name).await
}

#[idempotent(key = "deaths-phase-inside:<id>", on_stale = "retry", idem = w.idem)]
pub(in super::super) async fn inside<DB: Dialect>(
    w: &Worker,
    connection: &mut DB::Connection,
    id: &str,
    call: Call<'_>,
) -> Result<String, Fault> {
    let mut own = DB::begin_on(connection).await;
    let tx = &mut own;
    let name: String = phase!("act", mode = "transactional", tx = tx, async {
        call.begins()?;
        put::<DB>(&mut **tx, id).await?;
        call.ends()
    });
    here(Stop::BeforeCommit);
    own.commit().await.expect("a commit");
    here(Stop::AfterCommit);
    goes_on(name).await
}

async fn goes_on(name: String) -> Result<String, Fault> {
    here(Stop::BetweenPhases);
    phase!("then", mode = "record_after", async { Ok(()) });
    Ok(name)
}
