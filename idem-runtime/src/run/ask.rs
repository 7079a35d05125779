//! What becomes of a claim whose effect was asked about.

use super::{
    Ending, Execution, Refusal,
    settle::{Progress, brief, end},
};
use crate::{
    claim::Claim,
    error::Error,
    outcome::Outcome,
    record::{Record, Status},
    service::Failure,
    store::{self, Answer},
};

impl Execution {
    /// It happened: that is recorded, and the probe's value is the answer of the call if this is no error.
    pub(crate) async fn happened(mut self: Box<Self>, ending: Ending) -> Option<Error> {
        self.on_success = Outcome::Probed;
        self.settle(ending).await
    }

    /// It did not happen: the body may run under the same claim, while that stands.
    pub(crate) fn did_not_happen(mut self: Box<Self>) -> Result<Box<Self>, Error> {
        if self.context.lease.as_ref().is_some_and(|lease| lease.is_lost()) {
            self.progress = Progress::Asks;
            return Err(self.dropped());
        }
        self.progress = Progress::Runs;
        Ok(self)
    }

    /// Nobody knows: a person decides.
    pub(crate) async fn unknown(mut self: Box<Self>) -> Error {
        let (job, key, slot) = (self.job, self.context.key.clone(), self.slot.take());
        let service = self.idem.service().clone();
        let turned_over = match self.claim.take() {
            Some(claim) => service.complete(self.turn_over(claim, "the probe answered `Unknown`")).await,
            None => Ok(Ok(None)),
        };
        let error = match turned_over {
            Ok(Ok(Some(record))) => {
                let retry_after = service.limits().review_after;
                Error::NeedsReview { key, reason: record.evidence(), retry_after }
            }
            Ok(Ok(None)) => Error::ClaimLost { key },
            Ok(Err(failure)) | Err(failure) => failure.into_error(Some(&key)),
        };
        Refusal { job, error, slot }.report()
    }

    /// The same for a probe that panicked, which nobody waits for.
    pub(super) fn probe_panicked(&self, claim: Claim) {
        let turning_over = self.turn_over(claim, "the probe panicked");
        self.idem.service().detach(async move {
            if let Err(failure) = turning_over.await {
                tracing::warn!(?failure, "a key whose probe panicked was not turned over for review");
            }
        });
    }

    /// A call that has no probe to ask.
    pub(crate) fn unasked(mut self) -> Error {
        let error = Error::config("a job with a probe is called by way of it");
        Refusal { job: self.job, error, slot: self.slot.take() }.report()
    }

    /// Gives the claim up, and turns its row over for review; the row as it is then, if it still was that claim's. Who
    /// dies in between leaves a stale claim, which is asked about again.
    fn turn_over(
        &self,
        claim: Claim,
        fate: &'static str,
    ) -> impl Future<Output = Result<Option<Box<Record>>, Failure>> + Send + use<> {
        let reviewer = self.idem.reviewer().clone();
        let whole = self.context.key.clone();
        let (key, owner, term) = (claim.key().clone(), claim.owner().to_owned(), claim.lease().term());
        let (giving_up, _) = end(claim, store::Ending::Held { error: None });
        async move {
            let Answer::Written { fence } = giving_up.await? else { return Ok(None) };
            let patience = || reviewer.service.patience(Some(term));
            let Some(mut record) = reviewer.service.read(key, patience()).await? else { return Ok(None) };
            if record.is_of(&owner, fence) && record.status == Status::Processing {
                record.error = Some(brief(Some(match record.error.take() {
                    Some(before) => format!("{fate}; before that: {before}"),
                    None => fate.to_owned(),
                })));
                match reviewer.flag(&whole, &record, patience()).await? {
                    Answer::Written { .. } => return Ok(Some(record)),
                    Answer::Found(found) => record = found,
                    Answer::Gone => return Ok(None),
                }
            }
            // Somebody else may have turned it over.
            let is_in_review = record.is_of(&owner, fence) && record.status == Status::NeedsReview;
            Ok(is_in_review.then_some(record))
        }
    }
}
