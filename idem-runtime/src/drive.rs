//! The asynchronous call of a job, from its admission to its settlement.
//!
//! Written by hand, because it stays on the stack while its body runs, once for each job that calls another: in a debug
//! build the frame of an `async fn` holds a copy of everything that passes through it.

use std::{
    future::Future,
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

    /// Makes the record of what the body left: nothing, where it did not come to its end.
    #[inline(never)]
    fn settle(&mut self) {
        let Some(execution) = self.take_execution() else { return };
        let ending = self.returned.take().zip(self.classify.take()).map(|(returned, classify)| {
            let (returned, ending) = self.edge.ending(returned, classify);
            self.returned = Some(returned);
            ending
        });
        self.stage = Stage::Settled(settlement(execution, ending));
    }

    #[inline(never)]
    fn answer(&mut self, refused: Option<Error>) -> R {
        self.stage = Stage::Over;
        match (self.returned.take(), refused) {
            (Some(returned), None) => returned,
            (_, Some(error)) => (self.edge.refuse)(error),
            (None, None) => unreachable!("a body that did not return is refused"),
        }
    }
}

impl<R, E, C, B: Future> Drive<R, E, C, B> {
    /// Drops what there is of the body where it ran, and then gives the execution.
    fn take_execution(&mut self) -> Option<Box<Execution>> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Attended(attendance) => Some(attendance.end(self.body.take())),
            other => {
                self.stage = other;
                None
            }
        }
    }
}

/// One poll of the body; whether it is over.
fn step<B: Future>(
    body: &mut Option<Pin<Box<B>>>,
    returned: &mut Option<B::Output>,
    cx: &mut Context<'_>,
) -> bool {
    let Some(running) = body else { return true };
    let Poll::Ready(value) = running.as_mut().poll(cx) else { return false };
    *returned = Some(value);
    *body = None;
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
            match &mut this.stage {
                Stage::Admitted(admission) => {
                    let admission = ready!(admission.as_mut().poll(cx));
                    if let Some(answer) = this.admit(admission) {
                        return Poll::Ready(answer);
                    }
                }
                Stage::Attended(attendance) => {
                    let (body, returned) = (&mut this.body, &mut this.returned);
                    ready!(attendance.poll(cx, &mut |cx| step(body, returned, cx)));
                    this.settle();
                }
                Stage::Settled(settlement) => {
                    let refused = ready!(settlement.as_mut().poll(cx));
                    return Poll::Ready(this.answer(refused));
                }
                Stage::Over => panic!("a call was polled after its end"),
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
fn settlement(execution: Box<Execution>, ending: Option<Ending>) -> Boxed<Option<Error>> {
    match ending {
        Some(ending) => Box::pin(execution.settle(ending)),
        None => Box::pin(std::future::ready(Some(execution.dropped()))),
    }
}
