//! Asking whether the effect of an execution that stopped half way happened, before the job runs again: what a probe
//! answers, and the typed shell of a call that has one.

use std::{
    any::type_name,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::{
    block_on::block_on,
    call::{Call, Edge, admit_now, attend_sync},
    drive::{Boxed, Drive, Running, admission},
    error::Error,
    job::OnError,
    run::{Admission, Attendance, Ending, Execution},
};

/// What a probe found out about the effect of an execution that stopped half way.
///
/// A probe (`on_stale = probe(path)`) is asked when a delivery meets a stale claim, and before anything runs. It takes
/// the parameters that the key names, by reference (and `&self` first, where the job has a receiver):
///
/// ```
/// use idem_runtime::{Error, Probe, idempotent};
/// # mod bank {
/// #     pub struct Charge { pub receipt: String }
/// #     pub async fn find(_: u64, _: &str) -> Result<Option<Charge>, std::io::Error> { Ok(None) }
/// #     pub async fn charge(_: u64, _: &str, _: u64) -> String { String::new() }
/// # }
///
/// #[idempotent(key = "subscription:<user_id>:<month>", on_stale = probe(was_charged))]
/// async fn charge_user(user_id: u64, month: &str, cents: u64) -> Result<String, Error> {
///     Ok(bank::charge(user_id, month, cents).await)
/// }
///
/// async fn was_charged(user_id: &u64, month: &str) -> Probe<String> {
///     match bank::find(*user_id, month).await {
///         Ok(Some(charge)) => Probe::Happened(charge.receipt),
///         Ok(None) => Probe::DidNotHappen,
///         Err(_) => Probe::Unknown, // the bank did not answer
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Probe<T> {
    /// It happened, and this is the job's result: the key is completed with it.
    Happened(T),
    /// It did not happen, and will not any more: the job runs.
    DidNotHappen,
    /// Nobody can tell: the key needs review.
    Unknown,
}

/// A call that is admitted: its body may run, or its answer is there.
#[must_use]
pub struct Admitted<R, E> {
    pub(crate) edge: Edge<R, E>,
    pub(crate) execution: Result<Box<Execution>, R>,
}

impl<R, E> fmt::Debug for Admitted<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted").finish_non_exhaustive()
    }
}

/// Admits an asynchronous call of a job that has a probe, which is asked where that is needed.
pub fn admit<R, T, E, P>(call: Call<R, T, E>, probe: P) -> impl Future<Output = Admitted<R, E>>
where
    P: AsyncFnOnce() -> Probe<T>,
{
    let Call { ticket, edge, join } = call;
    let admission = admission(ticket, type_name::<P>());
    async move {
        let execution = match admission.await {
            Admission::Ask(execution) => {
                let asking = Asking::new(execution, Box::pin(probe()));
                let (execution, answer) = asking.await;
                hear(&edge, join, execution, answer).await
            }
            admission => edge.answer(admission),
        };
        Admitted { edge, execution }
    }
}

/// Runs the body of an admitted call.
pub fn finish<R, E, B>(admitted: Admitted<R, E>, body: B) -> impl Future<Output = R>
where
    B: AsyncFnOnce() -> R,
{
    Drive::admitted(admitted, |_| None, Box::pin(body()))
}

/// `finish` with a function that judges the error.
pub fn finish_classified<R, E, B>(
    admitted: Admitted<R, E>,
    classify: impl FnOnce(&E) -> OnError,
    body: B,
) -> impl Future<Output = R>
where
    B: AsyncFnOnce() -> R,
{
    Drive::admitted(admitted, |error| Some(classify(error)), Box::pin(body()))
}

/// `admit` for a synchronous job.
pub fn admit_sync<R, T, E, P>(call: Call<R, T, E>, probe: P) -> Admitted<R, E>
where
    P: FnOnce() -> Probe<T>,
{
    let Call { ticket, edge, join } = call;
    let execution = match admit_now(ticket, type_name::<P>()) {
        Admission::Ask(mut execution) => {
            let answer = execution.attend_sync(probe);
            block_on(hear(&edge, join, execution, Some(answer)))
        }
        admission => edge.answer(admission),
    };
    Admitted { edge, execution }
}

/// `finish` for a synchronous job.
pub fn finish_sync<R, E, B>(admitted: Admitted<R, E>, body: B) -> R
where
    B: FnOnce() -> R,
{
    attend(admitted, |_| None, body)
}

/// `finish_sync` with a function that judges the error.
pub fn finish_sync_classified<R, E, B>(
    admitted: Admitted<R, E>,
    classify: impl FnOnce(&E) -> OnError,
    body: B,
) -> R
where
    B: FnOnce() -> R,
{
    attend(admitted, |error| Some(classify(error)), body)
}

fn attend<R, E, B>(admitted: Admitted<R, E>, classify: impl FnOnce(&E) -> Option<OnError>, body: B) -> R
where
    B: FnOnce() -> R,
{
    let Admitted { edge, execution } = admitted;
    match execution {
        Ok(execution) => attend_sync(&edge, execution, classify, body),
        Err(answer) => answer,
    }
}

/// Does what the probe's answer asks for. None is that of a probe that was dropped because its lease was lost.
async fn hear<R, T, E>(
    edge: &Edge<R, E>,
    join: fn(T) -> R,
    execution: Box<Execution>,
    answer: Option<Probe<T>>,
) -> Result<Box<Execution>, R> {
    let refused = match answer {
        Some(Probe::Happened(value)) => {
            let (returned, ending) = edge.ending(join(value), |_| None);
            match recording(execution, ending).await {
                None => return Err(returned),
                Some(error) => error,
            }
        }
        Some(Probe::DidNotHappen) => match execution.did_not_happen() {
            Ok(execution) => return Ok(execution),
            Err(error) => error,
        },
        Some(Probe::Unknown) => review(execution).await,
        None => execution.dropped(),
    };
    Err((edge.refuse)(refused))
}

#[inline(never)]
fn recording(execution: Box<Execution>, ending: Ending) -> Boxed<Option<Error>> {
    Box::pin(execution.happened(ending))
}

#[inline(never)]
fn review(execution: Box<Execution>) -> Boxed<Error> {
    Box::pin(execution.unknown())
}

/// A probe while it is asked.
struct Asking<F: Future> {
    /// Nothing once it is over.
    attendance: Option<Attendance>,
    probe: Running<F>,
}

impl<F: Future> Asking<F> {
    fn new(execution: Box<Execution>, probe: Pin<Box<F>>) -> Self {
        Self { attendance: Some(execution.attend()), probe: Running::new(probe) }
    }
}

impl<F: Future> Future for Asking<F> {
    type Output = (Box<Execution>, Option<F::Output>);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(attendance) = &mut this.attendance {
            ready!(this.probe.poll(attendance, cx));
        }
        match this.attendance.take() {
            Some(attendance) => Poll::Ready((this.probe.end(attendance), this.probe.returned.take())),
            // As an `async fn` does.
            None => panic!("a probe was polled after its end"),
        }
    }
}

/// A probe that is dropped is dropped where it ran, before the claim hears of it.
impl<F: Future> Drop for Asking<F> {
    fn drop(&mut self) {
        if let Some(attendance) = self.attendance.take() {
            drop(self.probe.end(attendance));
        }
    }
}
