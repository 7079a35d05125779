//! What the history says of what happens: each invariant is checked here, at the step that would break it.

use idem_runtime::{OnStale, Status, record::Standing};
use idem_tests::table::Row;

use crate::{
    call::Call,
    job::is_strict,
    life::Flaw,
    person::Deed,
    protocol::Protocol,
    state::State,
    write::{Execution, FOUND_BY_THE_PROBE, SAID_BY_A_PERSON, Sent, Verdict, Write},
};

impl Protocol {
    /// An effect in the outside world.
    pub(crate) fn effect(&self, state: &mut State, call: &Call, of: Option<Execution>) {
        let life = &mut state.lives[call.key];
        life.did |= 1 << call.delivery;
        if of.is_some_and(|of| of.life != life.number) {
            return;
        }
        let strict = is_strict(self.jobs[call.job]);
        let fence = of.map_or(0, |of| of.fence);
        let second = !life.freed && life.strict.is_some_and(|first| strict || first < fence);
        let repeated = self.only_the_dead_lapse && life.effects > 0;
        life.effects = (life.effects + 1).min(2);
        if strict {
            life.strict = Some(fence);
        }
        if second {
            state.note(Flaw::SecondEffect);
        }
        if repeated {
            state.note(Flaw::EffectDespiteAnswer);
        }
    }

    /// What the history says of a write that changed a row.
    pub(crate) fn witness(&self, state: &mut State, sent: &Sent, before: Option<&Row>, after: Option<&Row>) {
        let key = sent.key;
        if let (Some(before), Some(after)) = (before, after) {
            if after.fence < before.fence {
                state.note(Flaw::FenceFell);
            }
            let same = after.status == Status::Completed && after.result == before.result;
            if before.status == Status::Completed && !same && !may_change_a_completion(sent) {
                state.note(Flaw::CompletionChanged);
            }
        }
        let fence = after.map_or(0, |row| row.fence);
        let highest = state.lives[key].highest;
        match &sent.write {
            Write::Claim { owner } => {
                state.lives[key].holder = Some(*owner);
                if fence <= highest {
                    state.note(Flaw::FenceShared);
                }
            }
            Write::Take { owner, seen } => {
                let verdict = self.verdict(seen, sent.job);
                if verdict == Verdict::Run(Standing::Expired) {
                    state.lives[key].ends();
                }
                let takes_over = matches!(verdict, Verdict::Run(Standing::Stale) | Verdict::Ask);
                let alerts = |row: &Row| row.on_stale.as_deref() == Some(OnStale::Alert.as_str());
                if takes_over && before.is_some_and(alerts) {
                    state.note(Flaw::AlertTakenOver);
                }
                state.lives[key].holder = Some(*owner);
                if fence <= highest {
                    state.note(Flaw::FenceShared);
                }
            }
            Write::Record { over, .. } => {
                let goes_on = |row: &Row| matches!(row.status, Status::Processing | Status::Released);
                if over.as_ref().is_some_and(|row| !goes_on(row)) {
                    state.lives[key].ends();
                }
                state.lives[key].holder = None;
                if fence <= highest {
                    state.note(Flaw::FenceShared);
                }
            }
            Write::Finish { of, .. } => {
                state.writes_as_holder(key, *of);
                state.lives[key].holder = None;
            }
            Write::Renew { of } | Write::Review { of } => state.writes_as_holder(key, *of),
            Write::Flag { .. } => {}
            Write::Decide { seen, deed, force } => {
                let life = &mut state.lives[key];
                match deed {
                    Deed::Forget => life.ends(),
                    Deed::Complete | Deed::Retry | Deed::Fail => {
                        life.freed |= *force || *deed == Deed::Retry;
                        if before.is_some_and(|row| row.status == Status::Completed) {
                            life.completions = 0;
                        }
                        if Deed::raises_fence(seen, *force) {
                            life.holder = None;
                        }
                    }
                }
            }
        }
        let life = &mut state.lives[key];
        life.highest = life.highest.max(fence);
    }
}

impl State {
    /// A completion was accepted.
    pub(crate) fn accepted(&mut self, key: usize, of: Execution) {
        let life = &mut self.lives[key];
        if of.life != life.number {
            return;
        }
        life.completions += 1;
        if life.completions > 1 {
            self.note(Flaw::SecondCompletion);
        }
    }

    /// The queue is told that the job is done, with this result.
    pub(crate) fn acknowledge(&mut self, key: usize, result: &str) {
        let did = self.lives[key].did;
        let happened = match result {
            SAID_BY_A_PERSON => true,
            FOUND_BY_THE_PROBE => did != 0,
            owner => owner.parse::<u16>().is_ok_and(|owner| did & (1 << (owner / 10)) != 0),
        };
        if !happened {
            self.note(Flaw::SilentSuccess);
        }
    }

    fn writes_as_holder(&mut self, key: usize, of: Execution) {
        if self.lives[key].holder != Some(of.owner) {
            self.note(Flaw::ZombieWrote);
        }
    }
}

fn may_change_a_completion(sent: &Sent) -> bool {
    let past_ttl = |row: &Row| row.expires_at.is_some_and(|end| end <= row.now);
    match &sent.write {
        Write::Decide { force, .. } => *force,
        Write::Take { seen, .. } => past_ttl(seen),
        Write::Record { over, .. } => over.as_ref().is_some_and(past_ttl),
        _ => false,
    }
}
