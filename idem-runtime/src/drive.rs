//! The asynchronous call of a job, from its admission to its settlement.
//!
//! Written by hand, because it stays on the stack while its body runs, once for each job that calls another: in a debug
//! build the frame of an `async fn` holds a copy of everything that passes through it.

use std::{
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::{
    call::{Call, Edge},
    error::Error,
    job::OnError,
    point::is_dead,
    probe::Admitted,
    run::{self, Admission, Attendance, Ending, Execution, Ticket},
};

/// A future that knows nothing of the job's types.
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub(crate) struct Drive<R, E, C, B: Future> {
    edge: Edge<R, E>,
    classify: Option<C>,
    body: Running<B>,
    stage: Stage,
}

enum Stage {
    Admitted(Boxed<Admission>),
    Attended(Attendance),
    /// The answer is there, and no body runs.
    Answered,
    /// What the body returned is the answer, if its record is not refused.
    Settled(Boxed<Option<Error>>),
    Over,
}

impl<R, E, C, B> Drive<R, E, C, B>
where
    C: FnOnce(&E) -> Option<OnError>,
    B: Future<Output = R>,
{
    pub(crate) fn new<T>(call: Call<R, T, E>, classify: C, body: Pin<Box<B>>, place: &'static str) -> Self {
        let Call { ticket, edge, .. } = call;
        let stage = Stage::Admitted(admission(ticket, place));
        Self { edge, classify: Some(classify), body: Running::new(body), stage }
    }

    /// A call that was admitted already.
    pub(crate) fn admitted(admitted: Admitted<R, E>, classify: C, body: Pin<Box<B>>) -> Self {
        let Admitted { edge, execution } = admitted;
        let mut body = Running::new(body);
        let stage = match execution {
            Ok(execution) => Stage::Attended(execution.attend()),
            Err(answer) => {
                body.returned = Some(answer);
                Stage::Answered
            }
        };
        Self { edge, classify: Some(classify), body, stage }
    }

    #[inline(never)]
    fn admit(&mut self, admission: Admission) -> Option<R> {
        match self.edge.answer(admission) {
            Ok(execution) => {
                self.stage = Stage::Attended(execution.attend());
                None
            }
            Err(answer) => {
                self.stage = Stage::Over;
                Some(answer)
            }
        }
    }

    /// Records what the body left. One that did not come to its end is answered at once.
    #[inline(never)]
    fn settle(&mut self) -> Option<R> {
        let execution = self.take_execution()?;
        let Some((returned, classify)) = self.body.returned.take().zip(self.classify.take()) else {
            return Some((self.edge.refuse)(execution.dropped()));
        };
        let (returned, ending) = self.edge.ending(returned, classify);
        self.body.returned = Some(returned);
        self.stage = Stage::Settled(settlement(execution, ending));
        None
    }

    #[inline(never)]
    fn answer(&mut self, refused: Option<Error>) -> Option<R> {
        self.stage = Stage::Over;
        let returned = self.body.returned.take()?;
        Some(refused.map_or(returned, self.edge.refuse))
    }
}

impl<R, E, C, B: Future> Drive<R, E, C, B> {
    /// Drops what there is of the body where it ran, and then gives the execution.
    fn take_execution(&mut self) -> Option<Box<Execution>> {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Attended(attendance) => Some(self.body.end(attendance)),
            other => {
                self.stage = other;
                None
            }
        }
    }
}

/// What runs in an execution, and what it returned.
pub(crate) struct Running<F: Future> {
    future: Option<Pin<Box<F>>>,
    pub(crate) returned: Option<F::Output>,
}

impl<F: Future> Running<F> {
    pub(crate) fn new(future: Pin<Box<F>>) -> Self {
        Self { future: Some(future), returned: None }
    }

    /// Lets it go on; ready where it is over, or not to go on. It is dropped once its end is noted: whatever goes wrong
    /// in that, its effect may have happened.
    pub(crate) fn poll(&mut self, attendance: &mut Attendance, cx: &mut Context<'_>) -> Poll<()> {
        attendance.poll(cx, &mut |cx| {
            let Some(future) = &mut self.future else { return true };
            let Poll::Ready(value) = future.as_mut().poll(cx) else { return false };
            self.returned = Some(value);
            true
        })
    }

    /// Drops what there is of it where it ran, and then gives the execution.
    pub(crate) fn end(&mut self, attendance: Attendance) -> Box<Execution> {
        let left = self.future.is_some();
        let mut drop_future = || self.future = None;
        attendance.end(left.then_some(&mut drop_future))
    }
}

/// Nothing in it is pinned in place.
impl<F: Future> Unpin for Running<F> {}

impl<R, E, C, B> Future for Drive<R, E, C, B>
where
    C: FnOnce(&E) -> Option<OnError>,
    B: Future<Output = R>,
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let this = self.get_mut();
        loop {
            let answer = match &mut this.stage {
                Stage::Admitted(admission) => {
                    let admission = ready!(admission.as_mut().poll(cx));
                    this.admit(admission)
                }
                Stage::Attended(attendance) => {
                    ready!(this.body.poll(attendance, cx));
                    this.settle()
                }
                Stage::Answered => this.answer(None),
                Stage::Settled(settlement) => {
                    let refused = ready!(settlement.as_mut().poll(cx));
                    this.answer(refused)
                }
                // As an `async fn` does.
                Stage::Over => panic!("a call was polled after its end"),
            };
            if is_dead() {
                return Poll::Pending;
            }
            if let Some(answer) = answer {
                return Poll::Ready(answer);
            }
        }
    }
}

/// Nothing in it is pinned in place.
impl<R, E, C, B: Future> Unpin for Drive<R, E, C, B> {}

/// A body that is dropped is dropped where it ran, before the claim hears of it.
impl<R, E, C, B: Future> Drop for Drive<R, E, C, B> {
    fn drop(&mut self) {
        drop(self.take_execution());
    }
}

#[inline(never)]
pub(crate) fn admission(ticket: Box<Ticket>, place: &'static str) -> Boxed<Admission> {
    Box::pin(run::admit(*ticket, place))
}

#[inline(never)]
fn settlement(execution: Box<Execution>, ending: Ending) -> Boxed<Option<Error>> {
    Box::pin(execution.settle(ending))
}
