//! Broken protocols: each breaks one rule, and the checker has to find what that leads to.

/// The rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// A completion counts whatever the row's owner and fence.
    CompletesWithoutFence,
    /// A heartbeat counts whatever the row's owner and fence.
    RenewsWithoutFence,
    /// A takeover counts whatever became of the row since it was read.
    TakesOverWithoutVersion,
    /// So does a flag for review.
    FlagsFromAnOldSnapshot,
    /// A hold leaves the fence as it is.
    HoldsWithTheSameFence,
    /// A fence is the clock, whatever fence there was before.
    FencesByTheClockAlone,
    /// A purge forgets the fences of what it deletes.
    PurgesWithTheFences,
    /// The floor of fences is that of the last row that went, not of the highest.
    FloorsByTheLastRow,
    /// The caller's policy alone decides about a stale claim.
    TrustsTheCallersPolicy,
    /// Nothing ever counts as stale.
    NeverFindsAClaimStale,
    /// A busy key is answered like a completed one.
    AcknowledgesABusyKey,
    /// A second completion of `record_after` replaces the first.
    RecordsOverACompletion,
    /// `record_after` records before the effect.
    RecordsBefore,
    /// A prober asks without having taken the claim, and takes it with the answer that it has.
    AsksBeforeItClaims,
}
