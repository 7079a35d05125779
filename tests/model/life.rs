//! The history that the invariants speak of: none of it is known to the protocol.

/// What happened to a key since it was last absent or past its ttl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Life {
    /// The how manyeth life it is: an execution of an earlier one counts for nothing in this.
    pub(crate) number: u8,
    /// Effects, up to two.
    pub(crate) effects: u8,
    /// Completions that were accepted, each from another execution; up to two.
    pub(crate) completions: u8,
    /// The fence of an execution that had its effect, of a job of which two effects are one too many.
    pub(crate) strict: Option<i64>,
    /// A person freed the key, or forced something.
    pub(crate) freed: bool,
    /// Whose claim the row is: the execution that was granted it last and has neither ended it nor been fenced off.
    pub(crate) holder: Option<u8>,
    /// The highest fence that the key ever had.
    pub(crate) highest: i64,
    /// The deliveries that had their effect, in any life.
    pub(crate) did: u16,
}

impl Life {
    /// The row is gone or past its ttl.
    pub(crate) fn ends(&mut self) {
        *self = Self { number: self.number + 1, highest: self.highest, did: self.did, ..Self::default() };
    }
}

/// An invariant that was broken. Each says what must never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flaw {
    SecondEffect,
    EffectDespiteAnswer,
    SecondCompletion,
    SilentSuccess,
    FenceShared,
    FenceFell,
    ZombieWrote,
    CompletionChanged,
    AlertTakenOver,
}

impl Flaw {
    /// The invariant, in words.
    pub(crate) const fn invariant(self) -> &'static str {
        match self {
            Self::SecondEffect => {
                "after the effect of a job under alert with hold or by_mark there is no other, unless a person freed \
                 the key or a job of a milder policy claimed it before"
            }
            Self::EffectDespiteAnswer => {
                "where the holders that were taken over are dead and the probe is truthful, no effect is repeated"
            }
            Self::SecondCompletion => {
                "no two executions have their completions accepted in one life of a key, unless a person undid the first"
            }
            Self::SilentSuccess => {
                "a delivery is acknowledged only if the effect of the completion happened, or a person said so"
            }
            Self::FenceShared => "an execution's fence is higher than any that its key had before",
            Self::FenceFell => "a row's fence never decreases",
            Self::ZombieWrote => "an execution that lost, ended or gave up its claim changes no row",
            Self::CompletionChanged => "a completed row changes only by force, or once it is past its ttl",
            Self::AlertTakenOver => "a claim of policy alert is never taken over",
        }
    }
}
