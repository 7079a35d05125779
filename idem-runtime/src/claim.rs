//! A claim that was granted: its owner, its fence, its lease, and the duty to end it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::watch;

use crate::{
    error::Error,
    key::hex,
    service::Service,
    store::{Ending, Finish, Renew},
};

/// A random 128-bit id for one execution, as 32 hex digits. Never a host name or a process id: both come again.
pub(crate) fn new_owner() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::Config {
        message: "the operating system gives no random numbers, which every execution needs to be told apart"
            .into(),
        source: Some(Box::new(error)),
    })?;
    Ok(hex(&bytes))
}

/// How long a claim counts, on the local monotonic clock.
#[derive(Debug)]
pub(crate) struct Lease {
    term: Duration,
    state: watch::Sender<LeaseState>,
}

#[derive(Debug, Clone, Copy)]
struct LeaseState {
    /// When the claim, or the renewal that was confirmed last, was sent.
    began: Instant,
    /// Its end has passed. A renewal that is confirmed after all ends that.
    lapsed: bool,
    /// For good.
    lost: bool,
}

impl Lease {
    /// A lease that counts from when its claim was sent.
    pub(crate) fn new(term: Duration, sent: Instant) -> Self {
        Self { term, state: watch::Sender::new(LeaseState { began: sent, lapsed: false, lost: false }) }
    }

    pub(crate) fn term(&self) -> Duration {
        self.term
    }

    /// When the claim, or the renewal that was confirmed last, was sent.
    pub(crate) fn began(&self) -> Instant {
        self.state.borrow().began
    }

    /// The local end of the lease, as things are.
    pub(crate) fn ends(&self) -> Instant {
        self.began() + self.term
    }

    pub(crate) fn is_lost(&self) -> bool {
        let state = *self.state.borrow();
        state.lost || Instant::now() >= state.began + self.term
    }

    /// A renewal that was sent at `sent` was confirmed: the claim stands, also if its local end had passed.
    pub(crate) fn renew(&self, sent: Instant) {
        self.state.send_modify(|state| {
            state.began = state.began.max(sent);
            state.lapsed = false;
        });
    }

    /// Nothing was confirmed for a whole lease.
    pub(crate) fn lapse(&self) {
        self.state.send_if_modified(|state| !std::mem::replace(&mut state.lapsed, true));
    }

    /// The row belongs to somebody else, or nobody is left to renew the lease.
    pub(crate) fn lose(&self) {
        self.state.send_if_modified(|state| !std::mem::replace(&mut state.lost, true));
    }

    /// Resolves when the lease is lost.
    pub(crate) async fn lost(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.state.subscribe().wait_for(|state| state.lost || state.lapsed).await;
    }
}

/// A granted claim. Whoever drops it without ending it gives it back: nothing ran under it.
#[derive(Debug)]
#[must_use]
pub(crate) struct Claim {
    service: Service,
    key: Arc<str>,
    owner: String,
    fence: i64,
    lease: Arc<Lease>,
    terms: ClaimTerms,
    /// Of a phase: the claim of its job.
    job: Option<Renew>,
    /// Of a job that asks, and taken over: given back unasked, it is as stale as it was.
    doubtful: bool,
    open: bool,
}

/// What is agreed on when a claim is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimTerms {
    /// The lease.
    pub(crate) lease: Duration,
    /// How long the row is kept once the claim is released; `None` is for good.
    pub(crate) released_for: Option<Duration>,
}

impl Claim {
    pub(crate) fn new(
        service: Service,
        key: Arc<str>,
        owner: String,
        fence: i64,
        terms: ClaimTerms,
        sent: Instant,
    ) -> Self {
        let lease = Arc::new(Lease::new(terms.lease, sent));
        Self { service, key, owner, fence, lease, terms, job: None, doubtful: false, open: true }
    }

    /// The claim of a phase, under that of its job.
    pub(crate) fn under(mut self, job: Option<Renew>) -> Self {
        self.job = job;
        self
    }

    /// Of a phase: the claim of its job.
    pub(crate) fn job(&self) -> Option<&Renew> {
        self.job.as_ref()
    }

    /// Whether it was taken over by a job that asks.
    pub(crate) fn doubted(mut self, doubtful: bool) -> Self {
        self.doubtful = doubtful;
        self
    }

    pub(crate) fn fence(&self) -> i64 {
        self.fence
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    pub(crate) fn key(&self) -> &Arc<str> {
        &self.key
    }

    pub(crate) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// Ends the claim; the ending is on its way when this returns.
    pub(crate) fn end(mut self, ending: Ending) -> (Service, Finish, Arc<Lease>) {
        self.open = false;
        (self.service.clone(), self.finish(ending), Arc::clone(&self.lease))
    }

    /// Ends a claim under which nothing ran.
    pub(crate) fn withdraw(self) -> (Service, Finish, Arc<Lease>) {
        let withdrawal = self.withdrawal();
        self.end(withdrawal)
    }

    fn withdrawal(&self) -> Ending {
        if self.doubtful {
            return Ending::Held { error: None };
        }
        Ending::Released { error: None, purge_after: self.terms.released_for, withdrawn: true }
    }

    fn finish(&self, ending: Ending) -> Finish {
        Finish { key: Arc::clone(&self.key), owner: self.owner.clone(), fence: self.fence, ending }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.open {
            self.service.finish_detached(self.finish(self.withdrawal()), &self.lease);
        }
    }
}
