//! The jobs of the matrix: one for each promise that a job can make.

use std::env;

use idem_runtime::{Outcome, current, idempotent, with_outcome, with_outcome_sync};
use idem_tests::Backend;
use sqlx::{MySql, Postgres, Sqlite, Transaction};

use super::{
    phases,
    stop::{Stop, here},
};
use crate::{
    cases::{call::Fault, site::Worker},
    transact::{dialect::Dialect, stage::put},
};

/// The jobs, by what they promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    Alert,
    Sync,
    ByMark,
    Release,
    Record,
    Short,
    Retry,
    RetryHold,
    After,
    AfterRecord,
    Inside,
    InsideRecord,
    /// Its phase is of the policy that it names.
    PhaseAlert,
    PhaseProbe,
    PhaseRetry,
    PhaseAfter,
    PhaseInside,
}

/// How a body ends that comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Well,
    /// With an `Err` after its effect.
    Badly,
    /// With an `Err` before its effect.
    Early,
}

pub(super) fn parsed<T: Copy + std::fmt::Debug>(variable: &str, all: &[T]) -> T {
    let name = env::var(variable).unwrap_or_else(|_| panic!("{variable} is set by the parent"));
    *all.iter().find(|one| format!("{one:?}") == name).unwrap_or_else(|| panic!("{variable}: {name}"))
}

impl Job {
    pub(super) const ALL: &[Self] = &[
        Self::Alert,
        Self::Sync,
        Self::ByMark,
        Self::Release,
        Self::Record,
        Self::Short,
        Self::Retry,
        Self::RetryHold,
        Self::After,
        Self::AfterRecord,
        Self::Inside,
        Self::InsideRecord,
        Self::PhaseAlert,
        Self::PhaseProbe,
        Self::PhaseRetry,
        Self::PhaseAfter,
        Self::PhaseInside,
    ];

    /// The key of a call.
    pub(super) fn key(self, id: &str) -> String {
        let head = match self {
            Self::Alert => "deaths-alert",
            Self::Sync => "deaths-sync",
            Self::ByMark => "deaths-mark",
            Self::Release => "deaths-release",
            Self::Record => "deaths-record",
            Self::Short => "deaths-short",
            Self::Retry => "deaths-retry",
            Self::RetryHold => "deaths-hold",
            Self::After => "deaths-after",
            Self::AfterRecord => "deaths-after-record",
            Self::Inside => "deaths-inside",
            Self::InsideRecord => "deaths-inside-record",
            Self::PhaseAlert => "deaths-phase-alert",
            Self::PhaseProbe => "deaths-phase-probe",
            Self::PhaseRetry => "deaths-phase-retry",
            Self::PhaseAfter => "deaths-phase-after",
            Self::PhaseInside => "deaths-phase-inside",
        };
        format!("{head}:{id}")
    }

    /// The phase of a call, where it is one of phases.
    pub(super) fn phase(self, id: &str) -> Option<String> {
        self.is_phased().then(|| format!("{}/act", self.key(id)))
    }

    pub(super) fn is_phased(self) -> bool {
        matches!(
            self,
            Self::PhaseAlert | Self::PhaseProbe | Self::PhaseRetry | Self::PhaseAfter | Self::PhaseInside
        )
    }

    /// Whether its effect is a row of the same database.
    pub(super) fn is_transactional(self) -> bool {
        matches!(self, Self::Inside | Self::InsideRecord | Self::PhaseInside)
    }

    /// Delivers it, in a transaction of its own where it wants one.
    pub(super) async fn call(self, call: Call<'_>) -> (Result<String, Fault>, Option<Outcome>) {
        let Call { w, id, .. } = call;
        match self {
            Self::Alert => with_outcome(alert(w, id, call)).await,
            Self::Sync => with_outcome_sync(|| sync(w, id, call)),
            Self::ByMark => with_outcome(by_mark(w, id, call)).await,
            Self::Release => with_outcome(release(w, id, call)).await,
            Self::Record => with_outcome(record(w, id, call)).await,
            Self::Short => with_outcome(short(w, id, call)).await,
            Self::Retry => with_outcome(retry(w, id, call)).await,
            Self::RetryHold => with_outcome(retry_hold(w, id, call)).await,
            Self::After => with_outcome(after(w, id, call)).await,
            Self::AfterRecord => with_outcome(after_record(w, id, call)).await,
            Self::Inside | Self::InsideRecord => match call.backend {
                Backend::Memory => panic!("no transaction is open in memory"),
                Backend::Sqlite => self.inside::<Sqlite>(call).await,
                Backend::Postgres => self.inside::<Postgres>(call).await,
                Backend::Mysql => self.inside::<MySql>(call).await,
            },
            Self::PhaseAlert => with_outcome(phases::alert(w, id, call)).await,
            Self::PhaseProbe => with_outcome(phases::probe(w, id, call)).await,
            Self::PhaseRetry => with_outcome(phases::retry(w, id, call)).await,
            Self::PhaseAfter => with_outcome(phases::after(w, id, call)).await,
            Self::PhaseInside => match call.backend {
                Backend::Memory => panic!("no transaction is open in memory"),
                Backend::Sqlite => phase_inside::<Sqlite>(call).await,
                Backend::Postgres => phase_inside::<Postgres>(call).await,
                Backend::Mysql => phase_inside::<MySql>(call).await,
            },
        }
    }

    async fn inside<DB: Dialect>(self, call: Call<'_>) -> (Result<String, Fault>, Option<Outcome>) {
        let mut connection = DB::connect(call.url).await;
        let mut tx = DB::begin_on(&mut connection).await;
        let done = match self {
            Self::InsideRecord => with_outcome(inside_record(call.w, &mut tx, call.id, call)).await,
            _ => with_outcome(inside(call.w, &mut tx, call.id, call)).await,
        };
        here(Stop::BeforeCommit);
        tx.commit().await.expect("a commit");
        here(Stop::AfterCommit);
        done
    }
}

async fn phase_inside<DB: Dialect>(call: Call<'_>) -> (Result<String, Fault>, Option<Outcome>) {
    let mut connection = DB::connect(call.url).await;
    with_outcome(phases::inside::<DB>(call.w, &mut connection, call.id, call)).await
}

/// One delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) w: &'a Worker,
    pub(super) backend: Backend,
    pub(super) url: &'a str,
    pub(super) id: &'a str,
    pub(super) ends: Ends,
    /// What the body returns: who ran it.
    pub(super) name: &'a str,
}

impl Call<'_> {
    /// The body's first half.
    pub(super) fn begins(self) -> Result<(), Fault> {
        here(Stop::BeforeEffect);
        if self.ends == Ends::Early {
            return Err(Fault::own(DOWN));
        }
        current().effect_starts();
        self.w.effect(self.id);
        Ok(())
    }

    /// The second one.
    pub(super) fn ends(self) -> Result<String, Fault> {
        here(Stop::AfterEffect);
        if self.ends == Ends::Badly { Err(Fault::own(DOWN)) } else { Ok(self.name.to_owned()) }
    }

    pub(super) fn runs(self) -> Result<String, Fault> {
        self.begins()?;
        self.ends()
    }
}

/// The body's own error.
pub(super) const DOWN: &str = "down";

#[idempotent(key = "deaths-alert:<id>", idem = w.idem)]
async fn alert(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    tokio::task::yield_now().await;
    call.runs()
}

#[idempotent(key = "deaths-sync:<id>", idem = w.idem)]
fn sync(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    call.runs()
}

#[idempotent(key = "deaths-mark:<id>", on_error = "by_mark", idem = w.idem)]
async fn by_mark(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    call.runs()
}

#[idempotent(key = "deaths-release:<id>", on_error = "release", idem = w.idem)]
async fn release(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    call.runs()
}

#[idempotent(key = "deaths-record:<id>", on_error = "record", idem = w.idem)]
async fn record(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    call.runs()
}

#[idempotent(key = "deaths-short:<id>", ttl = "1d", idem = w.idem)]
async fn short(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    call.runs()
}

#[idempotent(key = "deaths-retry:<id>", on_stale = "retry", idem = w.idem)]
async fn retry(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    call.runs()
}

#[idempotent(key = "deaths-hold:<id>", on_stale = "retry", on_error = "hold", idem = w.idem)]
async fn retry_hold(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    call.runs()
}

#[idempotent(key = "deaths-after:<id>", mode = "record_after", idem = w.idem)]
async fn after(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    call.runs()
}

#[idempotent(key = "deaths-after-record:<id>", mode = "record_after", on_error = "record", idem = w.idem)]
async fn after_record(w: &Worker, id: &str, call: Call<'_>) -> Result<String, Fault> {
    call.runs()
}

#[idempotent(key = "deaths-inside:<id>", mode = "transactional", idem = w.idem)]
async fn inside<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    call: Call<'_>,
) -> Result<String, Fault> {
    call.begins()?;
    put::<DB>(tx, id).await?;
    call.ends()
}

#[idempotent(key = "deaths-inside-record:<id>", mode = "transactional", on_error = "record", idem = w.idem)]
async fn inside_record<DB: Dialect>(
    w: &Worker,
    tx: &mut Transaction<'_, DB>,
    id: &str,
    call: Call<'_>,
) -> Result<String, Fault> {
    call.begins()?;
    put::<DB>(tx, id).await?;
    call.ends()
}
