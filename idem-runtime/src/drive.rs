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
    run::{self, Admission, Attendance, Ending, Execution, Ticket},
};

/// A future that knows nothing of the job's types.
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub(crate) struct Drive<R, E, C, B: Future> {
    edge: Edge<R, E>,
    classify: Option<C>,
    body: Option<Pin<Box<B>>>,
    returned: Option<R>,
    stage: Stage,
}

enum Stage {
    Admitted(Boxed<Admission>),
    Attended(Attendance),
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
        Self { edge, classify: Some(classify), body: Some(body), returned: None, stage }
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
        let Some((returned, classify)) = self.returned.take().zip(self.classify.take()) else {
            return Some((self.edge.refuse)(execution.dropped()));
        };
        let (returned, ending) = self.edge.ending(returned, classify);
        self.returned = Some(returned);
        self.stage = Stage::Settled(settlement(execution, ending));
        None
    }

    #[inline(never)]
    fn answer(&mut self, refused: Option<Error>) -> Option<R> {
        self.stage = Stage::Over;
        let returned = self.returned.take()?;
        Some(refused.map_or(returned, self.edge.refuse))
    }
}

impl<R, E, C, B: Future> Drive<R, E, C, B> {
    /// Drops what there is of the body where it ran, and then gives the execution.
    fn take_execution(&mut self) -> Option<Box<Execution>> {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Attended(attendance) => {
                let body = &mut self.body;
                let left = body.is_some();
                let mut drop_body = || *body = None;
                Some(attendance.end(left.then_some(&mut drop_body)))
            }
            other => {
                self.stage = other;
                None
            }
        }
    }
}

/// One poll of the body; whether it is over. It is dropped once its end is noted: whatever goes wrong in that, its effect
/// may have happened.
fn step<B: Future>(
    body: &mut Option<Pin<Box<B>>>,
    returned: &mut Option<B::Output>,
    cx: &mut Context<'_>,
) -> bool {
    let Some(running) = body else { return true };
    let Poll::Ready(value) = running.as_mut().poll(cx) else { return false };
    *returned = Some(value);
    true
}

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
                    let (body, returned) = (&mut this.body, &mut this.returned);
                    ready!(attendance.poll(cx, &mut |cx| step(body, returned, cx)));
                    this.settle()
                }
                Stage::Settled(settlement) => {
                    let refused = ready!(settlement.as_mut().poll(cx));
                    this.answer(refused)
                }
                // As an `async fn` does.
                Stage::Over => panic!("a call was polled after its end"),
            };
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
fn admission(ticket: Box<Ticket>, place: &'static str) -> Boxed<Admission> {
    Box::pin(run::admit(*ticket, place))
}

#[inline(never)]
fn settlement(execution: Box<Execution>, ending: Ending) -> Boxed<Option<Error>> {
    Box::pin(execution.settle(ending))
}
