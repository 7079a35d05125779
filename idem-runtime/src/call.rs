//! The typed shell of one call: what the attribute's expansion hands over, and the few places that know the job's
//! own types. Everything behind it is not generic.

use std::{any::type_name, fmt::Display, future::Future, ops::Deref};

use crate::{
    block_on::block_on,
    drive::Drive,
    error::Error,
    job::OnError,
    probe::Probe,
    result::{Encoded, Stored},
    run::{self, Admission, Ending, Execution, Ticket},
};

/// What an idempotent function returns: a `Result`, through any alias.
#[diagnostic::on_unimplemented(
    message = "an `#[idempotent]` function returns `Result<T, E>`, not `{Self}`",
    label = "not a `Result`"
)]
pub trait JobResult: Sized {
    /// The success value.
    type Ok;
    /// The error.
    type Err;

    /// As a plain `Result`.
    ///
    /// # Errors
    ///
    /// The error that it holds.
    fn split(self) -> Result<Self::Ok, Self::Err>;

    /// From a plain `Result`.
    fn join(result: Result<Self::Ok, Self::Err>) -> Self;
}

impl<T, E> JobResult for Result<T, E> {
    type Ok = T;
    type Err = E;

    fn split(self) -> Self {
        self
    }

    fn join(result: Self) -> Self {
        result
    }
}

/// An error type that can carry an [`Error`]: whatever converts from it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot carry an `idem_runtime::Error`",
    label = "this error type lacks `From<idem_runtime::Error>`",
    note = "add a variant such as `#[error(transparent)] Idem(#[from] idem_runtime::Error)`, or return `anyhow::Result`"
)]
pub trait JobError {
    /// The conversion.
    fn from_idem(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E: From<Error>> JobError for E {
    fn from_idem(error: Error) -> Self {
        error.into()
    }
}

/// Reads a stored result; `None` where there is none that would do.
type Replay<R> = fn(Option<&str>) -> Option<Result<R, serde_json::Error>>;

/// Looks into what the body returned: the encoded value of an `Ok`, or a call with the `Err`.
type Inspect<R, E> = fn(R, &mut dyn FnMut(&E)) -> (R, Option<Encoded>);

/// An error's words for the row, where it has some.
type Words<E> = fn(&E) -> Option<String>;

/// The places that know the job's types, as plain functions.
pub(crate) struct Edge<R, E> {
    pub(crate) refuse: fn(Error) -> R,
    replay: Replay<R>,
    inspect: Inspect<R, E>,
    wanted: fn() -> &'static str,
    describe: Words<E>,
}

impl<R: JobResult> Edge<R, R::Err>
where
    R::Err: JobError,
{
    fn new(replay: Replay<R>, inspect: Inspect<R, R::Err>) -> Self {
        Self {
            refuse: |error| R::join(Err(R::Err::from_idem(error))),
            replay,
            inspect,
            wanted: type_name::<R::Ok>,
            describe: |_| None,
        }
    }
}

/// One call of a job, before it is admitted.
#[must_use]
pub struct Call<R, T, E> {
    pub(crate) ticket: Box<Ticket>,
    pub(crate) edge: Edge<R, E>,
    /// What makes an answer of a value.
    pub(crate) join: fn(T) -> R,
}

impl<R, T, E> std::fmt::Debug for Call<R, T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// A call whose result is stored and replayed. The one place for a job's bounds.
pub fn stored<R>(ticket: Box<Ticket>) -> Call<R, R::Ok, R::Err>
where
    R: JobResult,
    R::Ok: Stored,
    R::Err: JobError,
{
    let edge = Edge::new(
        |json| {
            // A completion without a result (a foreign worker's) replays only the type that has one value.
            let json = json.or_else(|| is_unit::<R::Ok>().then_some("null"))?;
            Some(R::Ok::decode(json).map(|value| R::join(Ok(value))))
        },
        |returned, failed| inspect(returned, failed, Encoded::of),
    );
    Call { ticket, edge, join: |value| R::join(Ok(value)) }
}

/// A call whose result is not stored (`replay = false`).
pub fn unstored<R>(ticket: Box<Ticket>) -> Call<R, R::Ok, R::Err>
where
    R: JobResult,
    R::Err: JobError,
{
    let inspect =
        |returned, failed: &mut dyn FnMut(&R::Err)| inspect(returned, failed, |_| Encoded::Unwanted);
    Call { ticket, edge: Edge::new(|_| None, inspect), join: |value| R::join(Ok(value)) }
}

/// Whether `T` is `()`, without asking `T: 'static`.
fn is_unit<T>() -> bool {
    size_of::<T>() == 0 && type_name::<T>() == type_name::<()>()
}

fn inspect<R: JobResult>(
    returned: R,
    failed: &mut dyn FnMut(&R::Err),
    encode: fn(&R::Ok) -> Encoded,
) -> (R, Option<Encoded>) {
    let result = returned.split();
    let encoded = match &result {
        Ok(value) => Some(encode(value)),
        Err(error) => {
            failed(error);
            None
        }
    };
    (R::join(result), encoded)
}

impl<R, T, E> Call<R, T, E> {
    /// [`none`] of a probe's answers.
    #[must_use]
    pub fn no_answer(&self) -> fn() -> Option<Probe<T>> {
        none
    }

    /// How the job's error is put into words.
    pub fn describe(mut self, words: Words<E>) -> Self {
        self.edge.describe = words;
        self
    }
}

impl<R, E> Edge<R, E> {
    /// The answer of a call whose body does not run.
    pub(crate) fn answer(&self, admission: Admission) -> Result<Box<Execution>, R> {
        match admission {
            Admission::Run(execution) => Ok(execution),
            Admission::Ask(execution) => Err((self.refuse)(execution.unasked())),
            Admission::Refused(refusal) => Err((self.refuse)(refusal.report())),
            Admission::Completed(completed) => Err(match (self.replay)(completed.result()) {
                Some(Ok(answer)) => {
                    completed.replayed();
                    answer
                }
                Some(Err(source)) => (self.refuse)(completed.unreadable((self.wanted)(), source)),
                None => (self.refuse)(completed.without_result()),
            }),
        }
    }

    /// What the body's return means for the claim.
    pub(crate) fn ending(&self, returned: R, classify: impl FnOnce(&E) -> Option<OnError>) -> (R, Ending) {
        let mut classify = Some(classify);
        let mut failure = (None, None);
        let (returned, encoded) = (self.inspect)(returned, &mut |error| {
            failure = (classify.take().and_then(|classify| classify(error)), (self.describe)(error));
        });
        let ending = match encoded {
            Some(result) => Ending::Completed(result),
            None => Ending::Failed { verdict: failure.0, message: failure.1 },
        };
        (returned, ending)
    }
}

/// Runs an asynchronous job. The body is boxed here, before anything waits, so that its arguments are stored once.
pub fn run<R, T, E, B>(call: Call<R, T, E>, body: B) -> impl Future<Output = R>
where
    B: AsyncFnOnce() -> R,
{
    Drive::new(call, |_| None, Box::pin(body()), type_name::<B>())
}

/// `run` with a function that judges the error.
pub fn run_classified<R, T, E, B>(
    call: Call<R, T, E>,
    classify: impl FnOnce(&E) -> OnError,
    body: B,
) -> impl Future<Output = R>
where
    B: AsyncFnOnce() -> R,
{
    Drive::new(call, |error| Some(classify(error)), Box::pin(body()), type_name::<B>())
}

#[inline(never)]
pub(crate) fn admit_now(ticket: Box<Ticket>, place: &'static str) -> Admission {
    block_on(run::admit(*ticket, place))
}

#[inline(never)]
fn settle_now(execution: Box<Execution>, ending: Ending) -> Option<Error> {
    block_on(execution.settle(ending))
}

/// Runs a synchronous job; its thread waits for the claim and the completion.
pub fn run_sync<R, T, E, B>(call: Call<R, T, E>, body: B) -> R
where
    B: FnOnce() -> R,
{
    drive_sync(call, |_| None, body)
}

/// `run_sync` with a function that judges the error.
pub fn run_sync_classified<R, T, E, B>(
    call: Call<R, T, E>,
    classify: impl FnOnce(&E) -> OnError,
    body: B,
) -> R
where
    B: FnOnce() -> R,
{
    drive_sync(call, |error| Some(classify(error)), body)
}

fn drive_sync<R, T, E, B>(call: Call<R, T, E>, classify: impl FnOnce(&E) -> Option<OnError>, body: B) -> R
where
    B: FnOnce() -> R,
{
    let Call { ticket, edge, .. } = call;
    match edge.answer(admit_now(ticket, type_name::<B>())) {
        Ok(execution) => attend_sync(&edge, execution, classify, body),
        Err(answer) => answer,
    }
}

/// Runs the body of an admitted call, and records what it left.
pub(crate) fn attend_sync<R, E, B>(
    edge: &Edge<R, E>,
    mut execution: Box<Execution>,
    classify: impl FnOnce(&E) -> Option<OnError>,
    body: B,
) -> R
where
    B: FnOnce() -> R,
{
    let returned = execution.attend_sync(body);
    let (returned, ending) = edge.ending(returned, classify);
    match settle_now(execution, ending) {
        None => returned,
        Some(error) => {
            drop(returned);
            (edge.refuse)(error)
        }
    }
}

/// Makes the future of a body that boxes its own. Called where it stands, the closure would be a repeatable one, and
/// could not lend what it captured to the future.
pub fn built<F>(build: impl FnOnce() -> F) -> F {
    build()
}

/// Nothing, through a call, so that no lint sees that the branch on it is dead. It gives an `async` closure its
/// declared return type as an expectation.
#[must_use]
pub const fn none<R>() -> Option<R> {
    None
}

/// An error of unknown type, to be put into words: by `Display` where it has one.
#[derive(Debug)]
pub struct Describe<'a, E>(pub &'a E);

impl<E: Display> Describe<'_, E> {
    /// The error's text.
    #[must_use]
    pub fn idem_text(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}

/// What an error without `Display` is put into: a method of [`Describe`] itself wins over one behind its `Deref`,
/// and the caller needs no trait in scope.
#[derive(Debug)]
pub struct Mute;

impl Mute {
    /// Nothing.
    #[must_use]
    pub const fn idem_text(&self) -> Option<String> {
        let Self = self;
        None
    }
}

impl<E> Deref for Describe<'_, E> {
    type Target = Mute;

    fn deref(&self) -> &Mute {
        &Mute
    }
}
