//! Writes: what each of them asks of the store.

use std::sync::Arc;

use idem_runtime::{
    Status,
    record::{Decision, Standing, Terms, Under, decide, gives_way},
    store::{Answer, Ending, Finish, Insert, Moment, NewRow, PhaseDeed, PhaseWrite, Renew, Renewal, Replace},
};
use idem_tests::table::Row;

use super::{Mutant, Phased, job::Part, state::State};
use crate::{
    job::{FOREIGN_STALE_AFTER, RELEASED_FOR, SECOND},
    person::Deed,
    write::{Heard, claim, heard, restated, result_of},
};

/// What passes at least between the end of a life by hand and the birth of the next: no two are born in one microsecond.
pub(super) const A_WHILE: i64 = SECOND / 2;

/// An execution that was granted the job's claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Hold {
    pub(super) owner: u8,
    pub(super) fence: i64,
    /// When the job's row was born; `None` is in this execution.
    pub(super) born: Option<i64>,
    /// The life of the job that it belongs to, which the protocol does not know.
    pub(super) life: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sent {
    pub(super) part: Part,
    pub(super) write: Write,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Write {
    /// Claims the job, which is absent.
    Claim { owner: u8 },
    /// Claims the job's row as it was seen.
    Take { owner: u8, seen: Row },
    /// Ends an execution of the job, of which it is known or not that it has phases.
    Finish { of: Hold, end: End, phased: bool },
    /// Renews the lease of the job.
    Renew { of: Hold },
    /// Claims a phase that is absent, or as it was seen, under the claim of the job.
    Phase { of: Hold, over: Option<Row> },
    /// Completes the claim of a phase, under the claim of the job.
    Complete { of: Hold, fence: i64 },
    /// Records a phase that has no claim, under the claim of the job.
    Record { of: Hold, over: Option<Row> },
    /// Gives the claim of a phase up.
    GiveUp { of: Hold, fence: i64, end: End },
    /// Turns a stale claim as it was seen over to a person.
    Flag { seen: Row },
    /// What a person decided about a row as they saw it.
    Decide { seen: Row, deed: Deed, force: bool },
}

impl Write {
    /// The execution under whose claim a phase's row is written.
    fn under(&self) -> Option<Hold> {
        match self {
            Self::Phase { of, .. } | Self::Complete { of, .. } | Self::Record { of, .. } => Some(*of),
            _ => None,
        }
    }
}

/// How an execution ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Completed,
    Released,
    Held,
}

/// Of a row's result, the life of the job in which it was written, if a phase's execution did.
pub(super) fn life_of(row: &Row) -> Option<usize> {
    row.result.as_ref()?.split_once('@')?.1.parse().ok()
}

fn result(of: Hold) -> String {
    format!("{}@{}", result_of(of.owner), of.life)
}

impl Phased {
    /// What a worker that claims the job makes of its row.
    pub(super) fn decide_job(&self, row: &Row) -> Decision {
        let foreign_stale_after = FOREIGN_STALE_AFTER;
        let terms = Terms { job: self.job, fingerprint: None, foreign_stale_after, under: None };
        decide(Some(row), row.now, &terms)
    }

    /// What an execution of the job makes of a phase's row.
    pub(super) fn decide_phase(&self, of: Hold, part: Part, row: &Row) -> Decision {
        let row = &self.believed(of, row);
        let owner = result_of(of.owner);
        let under = Some(Under { owner: &owner, fence: of.fence, born: of.born });
        let foreign_stale_after = FOREIGN_STALE_AFTER;
        let terms = Terms { job: self.job(part), fingerprint: None, foreign_stale_after, under };
        decide(Some(row), row.now, &terms)
    }

    /// Whether the ending of a phase without a claim replaces the row it finds.
    pub(super) fn gives_way(&self, of: Hold, row: &Row) -> bool {
        let row = &self.believed(of, row);
        let owner = result_of(of.owner);
        let under = Under { owner: &owner, fence: of.fence, born: of.born };
        gives_way(row, row.now, true, self.mail, Some(under))
    }

    /// The row as a broken protocol takes it.
    fn believed(&self, of: Hold, row: &Row) -> Row {
        match self.mutant {
            Some(Mutant::WaitsForTheDead) if row.status == Status::Processing => {
                row.with(|row| row.owner = Some(result_of(of.owner)))
            }
            Some(Mutant::TakesAnyForADead) => row.with(|row| row.fence = row.fence.min(of.fence)),
            Some(Mutant::ForgetsTheBirth) if of.born.is_some() => row.with(|row| row.fingerprint = None),
            Some(Mutant::ForgetsWhoBegan) if of.born.is_none() => row.with(|row| row.fingerprint = None),
            _ => row.clone(),
        }
    }

    /// One atomic step of the store.
    pub(super) fn arrive(&self, state: &mut State, sent: &Sent) -> Heard {
        let before = state.table.clone();
        let heard = self.apply(state, sent);
        if state.table != before {
            let (then, now) = (before.row(sent.part.key()), state.table.row(sent.part.key()).cloned());
            if then == now.as_ref() {
                // Nothing but the lease of its job was renewed.
                if let Some(of) = sent.write.under() {
                    state.history.writes(of);
                }
            } else {
                state.witness(sent, then, now.as_ref());
            }
        }
        heard
    }

    fn apply(&self, state: &mut State, sent: &Sent) -> Heard {
        let key: Arc<str> = sent.part.key().into();
        let now = state.now;
        let answer = match &sent.write {
            Write::Claim { owner } => {
                state.table.insert(now, &Insert { key, row: claim(self.job, *owner, 1, 0) }).answer
            }
            Write::Take { owner, seen } => {
                let expired = self.decide_job(seen) == Decision::Run(Standing::Expired);
                let done = state.table.replace(now, &self.taking(key, sent.part, *owner, seen, expired));
                if done.changed && expired {
                    state.history.begin_life();
                }
                done.answer
            }
            Write::Finish { of, end, phased } => {
                let finish = Finish {
                    key,
                    owner: result_of(of.owner),
                    fence: of.fence,
                    ending: self.ending(*end, *phased),
                };
                state.table.finish(now, &finish).answer
            }
            Write::Renew { of } => {
                return match state.table.renew(now, &self.claim_of(*of)) {
                    Renewal::Renewed => Heard::Renewed,
                    Renewal::Lost | Renewal::Skipped => Heard::Lost,
                };
            }
            Write::Phase { of, over } => {
                let deed = self.claiming(key, sent.part, *of, over.as_ref());
                self.under(state, *of, deed)
            }
            Write::Complete { of, fence } => {
                let ending = Ending::Completed { result: Some(result(*of)), ttl: None };
                let finish = Finish { key, owner: result_of(of.owner), fence: *fence, ending };
                self.under(state, *of, PhaseDeed::Finish(finish))
            }
            Write::Record { of, over } => {
                let deed = self.recording(key, *of, over.as_ref());
                self.under(state, *of, deed)
            }
            Write::GiveUp { of, fence, end } => {
                let ending = match end {
                    End::Held => Ending::Held { error: None },
                    _ => Ending::Released { error: None, purge_after: None, withdrawn: false },
                };
                let finish = Finish { key, owner: result_of(of.owner), fence: *fence, ending };
                state.table.finish(now, &finish).answer
            }
            Write::Flag { seen } => {
                let mut flag = restated(&key, seen, Status::NeedsReview);
                let standing = state.table.row(&key);
                if let (Some(Mutant::FlagsFromAnOldSnapshot), Some(row)) = (self.mutant, standing) {
                    flag.expected = row.version();
                }
                state.table.replace(now, &flag).answer
            }
            Write::Decide { seen, deed, force } => {
                let heard = deed.done(&mut state.table, now, &key, seen, *force);
                if sent.part == Part::Job && *deed == Deed::Forget {
                    state.now += A_WHILE;
                }
                return heard;
            }
        };
        heard(answer)
    }

    fn ending(&self, end: End, phased: bool) -> Ending {
        let ttl = self.job.retention();
        let kept = phased && self.mutant != Some(Mutant::ReleasesWithoutPhases);
        let purge_after = if kept { ttl.map(|ttl| ttl.max(RELEASED_FOR)) } else { Some(RELEASED_FOR) };
        match end {
            End::Completed => Ending::Completed { result: None, ttl },
            End::Released => Ending::Released { error: None, purge_after, withdrawn: false },
            End::Held => Ending::Held { error: None },
        }
    }

    /// A claim of a row as it was seen.
    fn taking(&self, key: Arc<str>, part: Part, owner: u8, seen: &Row, expired: bool) -> Replace {
        let (attempt, takeovers) = match &seen.status {
            _ if expired => (1, 0),
            Status::Processing => (seen.attempt + 1, seen.takeovers + 1),
            _ => (seen.attempt + 1, seen.takeovers),
        };
        Replace {
            key,
            expected: seen.version(),
            row: claim(self.job(part), owner, attempt, takeovers),
            raise_fence: true,
            renew_birth: expired,
            audit: None,
        }
    }

    fn claiming(&self, key: Arc<str>, part: Part, of: Hold, over: Option<&Row>) -> PhaseDeed {
        match over {
            None => PhaseDeed::Insert(Box::new(Insert { key, row: claim(self.job(part), of.owner, 1, 0) })),
            Some(seen) => {
                let expired = self.decide_phase(of, part, seen) == Decision::Run(Standing::Expired);
                PhaseDeed::Replace(Box::new(self.taking(key, part, of.owner, seen, expired)))
            }
        }
    }

    fn recording(&self, key: Arc<str>, of: Hold, over: Option<&Row>) -> PhaseDeed {
        let row = NewRow {
            status: Status::Completed,
            on_stale: None,
            lease: Moment::Never,
            result: Some(result(of)),
            ..claim(self.mail, of.owner, 1, 0)
        };
        let Some(over) = over else { return PhaseDeed::Insert(Box::new(Insert { key, row })) };
        let expired = !matches!(over.status, Status::Released | Status::Processing);
        let attempt = if expired { 1 } else { over.attempt + 1 };
        PhaseDeed::Replace(Box::new(Replace {
            key,
            expected: over.version(),
            row: NewRow { attempt, takeovers: over.takeovers, ..row },
            raise_fence: true,
            renew_birth: expired,
            audit: None,
        }))
    }

    fn claim_of(&self, of: Hold) -> Renew {
        let key = Part::Job.key().into();
        Renew { key, owner: result_of(of.owner), fence: of.fence, lease: self.job.lease() }
    }

    /// A write of a phase under the claim of its job.
    fn under(&self, state: &mut State, of: Hold, deed: PhaseDeed) -> Answer {
        let mut job = self.claim_of(of);
        let standing = state.table.row(&job.key).filter(|row| match self.mutant {
            Some(Mutant::WritesUnguarded) => true,
            Some(Mutant::GuardsWithoutFence) => row.owner.as_ref() == Some(&job.owner),
            _ => false,
        });
        if let Some(row) = standing {
            job.owner = row.owner.clone().unwrap_or_default();
            job.fence = row.fence;
        }
        state.table.phase(state.now, &PhaseWrite { job, deed }).answer
    }
}
