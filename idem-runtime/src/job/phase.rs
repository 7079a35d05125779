//! What a phase is within the job that enters it: one with that job's label, template and lease, and its own policies.

use std::{
    sync::{Mutex, OnceLock, PoisonError, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use super::{Job, Mode, OnStale};

/// The jobs that a phase has been entered in, each with what it is there. Of the few pairs that a program has, each is
/// made once and kept for good.
#[derive(Debug)]
pub(super) struct Phases(Mutex<Vec<(&'static Job, &'static Job)>>);

impl Phases {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl Job {
    /// What this phase is within a job, or within a phase of one.
    pub(crate) fn within(&'static self, job: &'static Self) -> &'static Self {
        job.phased.store(true, Ordering::Relaxed);
        let mut known = self.phases.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, phase)) = known.iter().find(|(entered, _)| std::ptr::eq(*entered, job)) {
            return phase;
        }
        let phase: &'static Self = Box::leak(Box::new(self.placed_in(job)));
        known.push((job, phase));
        phase
    }

    fn placed_in(&self, job: &Self) -> Self {
        let label: &'static str = Box::leak(format!("{}/{}", job.name(), self.name).into_boxed_str());
        let (last, texts) = job.template.split_last().unwrap_or((&"", &[]));
        let (first, others) = self.template.split_first().unwrap_or((&"", &[]));
        let joint: &'static str = Box::leak(format!("{last}/{first}").into_boxed_str());
        let template: Vec<&'static str> = [texts, &[joint], others].concat();
        Self {
            label: Some(label),
            template: Box::leak(template.into_boxed_slice()),
            stale_after: self.stale_after.or(job.stale_after),
            heartbeat: job.heartbeat,
            max_takeovers: job.max_takeovers,
            path: OnceLock::from(label.to_owned()),
            shape: OnceLock::new(),
            receiver: OnceLock::new(),
            phased: AtomicBool::new(false),
            phases: Phases::new(),
            ttl: None,
            allow_overlap: &[],
            ..*self
        }
    }

    /// Whether a phase of this description makes a claim of its own. One that would be run again anyway stands under
    /// its job's: nobody else enters it meanwhile.
    pub(crate) fn claims(&self) -> bool {
        self.mode == Mode::LockFirst && self.on_stale != OnStale::Retry
    }

    /// How long a released row of the job is kept: one with phases for as long as a completion, because the next
    /// execution goes on where they ended.
    pub(crate) fn released_for(&self, limit: Duration) -> Option<Duration> {
        if self.is_phased() { self.ttl.map(|ttl| ttl.max(limit)) } else { Some(limit) }
    }

    /// Whether the job is known to have phases: they stand in its body, one was entered, or rows of some were seen.
    pub(crate) fn is_phased(&self) -> bool {
        self.phased.load(Ordering::Relaxed)
    }

    /// Notes that it has phases.
    pub(crate) fn note_phases(&self) {
        self.phased.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_described_by_its_job_and_itself() {
        static JOB: Job = Job::lock_first("order", &["order:", ""], "shop", "shop.rs", 1).stale_after(2);
        static LINE: Job = Job::lock_first("line", &["line:", ""], "shop", "shop.rs", 9);
        static MAIL: Job = Job::record_after("mail", &["mail"], "shop", "shop.rs", 12);
        let line = LINE.within(&JOB);
        assert_eq!((line.name(), line.shape()), ("shop::order/line", "order:<>/line:<>"));
        assert_eq!((line.lease(), line.retention()), (Duration::from_secs(2), None));
        assert!(line.claims() && JOB.is_phased());
        assert!(std::ptr::eq(line, LINE.within(&JOB)));
        let mail = MAIL.within(line);
        assert_eq!((mail.name(), mail.shape()), ("shop::order/line/mail", "order:<>/line:<>/mail"));
        assert!(!mail.claims());
    }
}
