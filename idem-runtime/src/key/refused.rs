//! What cannot stand in a key although people try it, each kind of type with its reason.
//!
//! No type implements one of these traits: the compiler names them where a value of such a type is in a key.
// A value is handed to `Part::idem_of`, which asks for the trait of its type's refusal; where there is none, to the
// `idem_of` behind the `Deref`, which asks for `KeyPart`. Both ask by the cast to a trait object, whose message names no
// function.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, LinkedList, VecDeque},
    marker::PhantomData,
    ops::Deref,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use super::KeyPart;

/// A float.
#[diagnostic::on_unimplemented(
    message = "the float `{Self}` cannot be part of an idempotency key",
    label = "a float",
    note = "0.3 and 0.1 + 0.2 would be two keys: the same intent would run twice",
    note = "pass whole units, such as cents in an integer, or a text with a fixed number of digits"
)]
pub trait FloatInKey: KeyPart {}

/// An `Option`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of an idempotency key",
    label = "can be `None`",
    note = "all calls with `None` would share one key, and all but the first would be taken for repeats",
    note = "take the value out in the caller; where none is a case of its own, write a job of its own for it"
)]
pub trait OptionInKey: KeyPart {}

/// A collection.
#[diagnostic::on_unimplemented(
    message = "the collection `{Self}` cannot be part of an idempotency key",
    label = "a collection",
    note = "the same job with its elements in another order, or with one more, would be another key and run again",
    note = "pass the id of what the elements belong to; to notice other elements under one key write `fingerprint = (…)`"
)]
pub trait CollectionInKey: KeyPart {}

/// A reading of a clock.
#[diagnostic::on_unimplemented(
    message = "the clock time `{Self}` cannot be part of an idempotency key",
    label = "a reading of the clock",
    note = "a job that is enqueued again reads another time and would run again",
    note = "pass the date or the period that the job is for, as a text or a type of `chrono`, `time` or `jiff` (features of `idem-runtime`)"
)]
pub trait ClockInKey: KeyPart {}

/// A length of time.
#[diagnostic::on_unimplemented(
    message = "the length of time `{Self}` cannot be part of an idempotency key",
    label = "a length of time",
    note = "it has no one text: 90 seconds are a minute and a half as well",
    note = "pass a whole number of one unit, such as its seconds"
)]
pub trait LengthOfTimeInKey: KeyPart {}

/// A tuple.
#[diagnostic::on_unimplemented(
    message = "the tuple `{Self}` cannot be part of an idempotency key as a whole",
    label = "a tuple",
    note = "a key is read by people, and the fields of a tuple have no names",
    note = "name its fields in the key, `<pair.0>:<pair.1>`, or write a struct that derives `KeyPart`"
)]
pub trait TupleInKey: KeyPart {}

/// `()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of an idempotency key",
    label = "has one value only",
    note = "it tells no two calls apart; leave it out of the key"
)]
pub trait UnitInKey: KeyPart {}

/// A type that is refused for a reason of its own.
#[doc(hidden)]
pub trait Refused {
    /// The trait that it lacks.
    type Reason<'p>: ?Sized;

    /// Never called.
    fn part<'p>(part: &'p Self::Reason<'p>) -> &'p dyn KeyPart;
}

macro_rules! refuse_behind {
    ($($pointer:ty),+) => {$(
        impl<T: Refused + ?Sized> Refused for $pointer {
            type Reason<'p> = T::Reason<'p>;

            fn part<'p>(part: &'p Self::Reason<'p>) -> &'p dyn KeyPart {
                T::part(part)
            }
        }
    )+};
}
refuse_behind!(&T, &mut T, Box<T>, Rc<T>, Arc<T>);

/// A value that is to stand in a key.
#[doc(hidden)]
#[derive(Debug)]
pub struct Part<'a, T: ?Sized>(pub &'a T);

impl<T: Refused + ?Sized> Part<'_, T> {
    /// Refused.
    #[must_use]
    pub fn idem_of<'p>(&self, part: &'p T::Reason<'p>) -> &'p dyn KeyPart {
        T::part(part)
    }
}

impl<T: KeyPart> Part<'_, T> {
    /// The value in the function of `key_fn`, which repeats the key: what is wrong with a type is said where the key is.
    #[must_use]
    pub fn idem_again(&self) -> &dyn KeyPart {
        self.0
    }
}

/// A value of a type that is not refused by name.
#[doc(hidden)]
#[derive(Debug)]
pub struct Other<T: ?Sized>(PhantomData<fn(&T)>);

impl<T: ?Sized> Other<T> {
    /// The value as what a key is made of.
    #[must_use]
    pub fn idem_of<'p>(&self, part: &'p dyn KeyPart) -> &'p dyn KeyPart {
        let Self(_) = self;
        part
    }

    /// No value: an error at the key was said already, and nothing is built.
    #[must_use]
    pub fn idem_again(&self) -> &dyn KeyPart {
        let Self(_) = self;
        const {
            // Asked of `T`, so that nothing is evaluated before a `T` is known: an optimized build tries.
            assert!(size_of::<&T>() == 0, "the key holds a value that is no `KeyPart`");
            &false as &dyn KeyPart
        }
    }
}

impl<T: ?Sized> Deref for Part<'_, T> {
    type Target = Other<T>;

    fn deref(&self) -> &Other<T> {
        const { &Other(PhantomData) }
    }
}

macro_rules! refuse {
    ($($reason:ident: $([$($generics:tt)*] $type:ty),+;)*) => {$($(
        impl<$($generics)*> Refused for $type {
            type Reason<'p> = dyn $reason + 'p;

            fn part<'p>(part: &'p Self::Reason<'p>) -> &'p dyn KeyPart {
                part
            }
        }
    )+)*};
}

refuse! {
    FloatInKey: [] f32, [] f64;
    OptionInKey: [T] Option<T>;
    CollectionInKey: [T] Vec<T>, [T] [T], [T, const N: usize] [T; N], [T] VecDeque<T>, [T] LinkedList<T>,
        [K, V, S] HashMap<K, V, S>, [T, S] HashSet<T, S>, [K, V] BTreeMap<K, V>, [T] BTreeSet<T>;
    ClockInKey: [] SystemTime, [] Instant;
    LengthOfTimeInKey: [] Duration;
    TupleInKey: [A] (A,), [A, B] (A, B), [A, B, C] (A, B, C), [A, B, C, D] (A, B, C, D),
        [A, B, C, D, E] (A, B, C, D, E), [A, B, C, D, E, F] (A, B, C, D, E, F);
    UnitInKey: [] ();
}

#[cfg(feature = "chrono")]
refuse! { LengthOfTimeInKey: [] chrono::TimeDelta; }
#[cfg(feature = "time")]
refuse! { LengthOfTimeInKey: [] time::Duration; }
#[cfg(feature = "jiff")]
refuse! { LengthOfTimeInKey: [] jiff::Span, [] jiff::SignedDuration; }
