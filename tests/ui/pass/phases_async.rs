//! Phases of asynchronous jobs: wherever an expression can stand, with every option.

use std::{
    cell::Cell,
    rc::Rc,
    sync::atomic::{AtomicU8, Ordering},
};

use async_trait::async_trait;
use idem_runtime::{Error, KeyPart, OnError, Stored, idempotent, phase};
use tokio::task::yield_now;

use super::{is_send, memory, once};

/// What the jobs do in the world outside, and how often it was done.
#[derive(Default)]
struct Bank(AtomicU8);

#[derive(Debug, thiserror::Error)]
#[error("refused")]
struct Refused;

impl Bank {
    async fn charge(&self, cents: u8) -> Result<u8, Refused> {
        yield_now().await;
        self.0.fetch_add(1, Ordering::Relaxed);
        if cents > 100 { Err(Refused) } else { Ok(cents) }
    }

    fn charges(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Line {
    id: u8,
    place: (u8, u8),
}

/// Fails until it may not, and goes on behind what it did.
#[idempotent(key = "phases_async:resumed:<id>", on_error = "release", idem = memory())]
async fn resumed(id: u8, bank: &Bank, fails: bool) -> anyhow::Result<u8> {
    let charged = phase!("charge", async { Ok(bank.charge(id).await?) });
    let lines = [Line { id: 1, place: (1, 2) }, Line { id: 2, place: (3, 4) }];
    for line in &lines {
        phase!("line", each = <line.id>, async { Ok(bank.charge(line.id).await?) });
    }
    if fails {
        anyhow::bail!("after all charges");
    }
    for Line { place, .. } in lines {
        phase!("place", each = <place.1>, async move { Ok(bank.charge(place.1).await?) });
    }
    Ok(charged)
}

#[tokio::test]
async fn a_repeat_goes_on_behind_the_phases_that_are_done() {
    let bank = Bank::default();
    is_send(resumed(7, &bank, true)).await.expect_err("a failure");
    assert_eq!(bank.charges(), 3);
    assert_eq!(is_send(resumed(7, &bank, false)).await.expect("a charge"), 7);
    assert_eq!(bank.charges(), 5);
}

fn judge(_: &anyhow::Error) -> OnError {
    OnError::Release
}

/// A mode, policies, a trailing comma, a value that is dropped, a `return`, a `?`, and a bare `Ok`.
#[idempotent(key = "phases_async:options:<id>", idem = memory())]
async fn options(id: u8, bank: &Bank) -> anyhow::Result<u8> {
    let mut count = 0;
    phase!("mail", mode = "record_after", async { bank.charge(id).await.map(drop).map_err(Into::into) });
    phase!("retried", on_stale = "retry", on_error = judge, async {
        count += 1;
        Ok(())
    },);
    phase!("leased", stale_after = "2m", on_stale = "alert", on_error = "by_mark", async { Ok(()) });
    let number = phase!("parsed", mode = "lock_first", async move {
        use std::num::NonZero;
        let Some(id) = NonZero::new(id) else { return Ok(0) };
        Ok(id.to_string().parse::<u8>()?)
    });
    let sum = number
        + phase!("one", async { Ok(count) })
        + phase!("outer", async { Ok(phase!("inner", async { Ok(1) })) });
    if sum == 0 {
        anyhow::bail!("nothing of {id}");
    }
    Ok(sum)
}

#[idempotent(key = "phases_async:arms:<id>", idem = memory())]
async fn arms(id: u8, bank: &Bank) -> anyhow::Result<u8> {
    let (left, right) = tokio::try_join!(
        async { Ok::<_, anyhow::Error>(phase!("left", async { Ok(bank.charge(id).await?) })) },
        async {
            let right = phase!("right", async { Ok(bank.charge(1).await?) });
            Ok::<_, anyhow::Error>(right)
        },
    )?;
    let (third, fourth) = tokio::join!(helper("third", bank), async {
        let fourth = phase!("fourth", async { Ok(4) });
        anyhow::Ok(fourth)
    });
    Ok(left + right + third? + fourth?)
}

/// Of no job of its own: it stands under that of its caller.
async fn helper(which: &str, bank: &Bank) -> Result<u8, Error> {
    let charged = phase!("helped", each = <which>, async { Ok(bank.charge(3).await.unwrap_or_default()) });
    Ok(charged)
}

type Boxed = Box<dyn std::error::Error + Send + Sync>;

/// The function's error type is one that its phases are held to, and their errors are made into it.
#[idempotent(key = "phases_async:coerced:<id>", idem = memory())]
async fn coerced(id: u8, bank: &Bank) -> Result<u8, Boxed> {
    let charged = phase!("charge", async {
        if id == 0 {
            return Err(Box::new(Refused));
        }
        match bank.charge(id).await {
            Ok(charged) => Ok(charged),
            Err(refused) => Err(Box::new(refused)),
        }
    });
    Ok(charged)
}

#[idempotent(key = "phases_async:generic:<id>", idem = memory())]
async fn generic<K: KeyPart + Copy + Send + Sync, T: Stored + Send, const N: usize>(
    id: K,
    values: [T; N],
) -> anyhow::Result<usize> {
    let mut kept = 0;
    for (number, value) in values.into_iter().enumerate() {
        let _value = phase!("kept", each = <number>, async { Ok(value) });
        kept += 1;
    }
    phase!("keyed", each = <id>, async { Ok(()) });
    Ok(kept)
}

struct Acme {
    name: String,
    count: u8,
}

impl Acme {
    #[idempotent(key = "phases_async:method:<self.name>:<id>", idem = memory())]
    async fn method(&mut self, id: u8) -> Result<u8, Error> {
        phase!("counted", async {
            self.count += id;
            yield_now().await;
            Ok(())
        });
        phase!("named", each = <self.name>, async { Ok(self.name.len()) });
        Ok(self.count)
    }
}

#[async_trait]
trait Work {
    async fn work(&self, id: u8) -> anyhow::Result<u8>;
}

#[async_trait]
impl Work for Acme {
    #[idempotent(key = "phases_async:async_trait:<self.name>:<id>", idem = memory())]
    async fn work(&self, id: u8) -> anyhow::Result<u8> {
        Ok(phase!("work", async { Ok(id + self.count) }))
    }
}

/// A body that stays on its thread.
#[idempotent(key = "phases_async:not_send:<id>", idem = memory())]
async fn not_send(id: u8) -> Result<u8, Error> {
    let count = Rc::new(Cell::new(id));
    let shared = Rc::clone(&count);
    phase!("counted", async move {
        yield_now().await;
        shared.set(shared.get() + 1);
        Ok(())
    });
    Ok(count.get())
}

#[tokio::test]
async fn phases_run_once_with_their_job() {
    let bank = Bank::default();
    assert_eq!(once(async || is_send(options(7, &bank)).await).await, 9);
    assert_eq!(once(async || is_send(arms(7, &bank)).await).await, 15);
    assert_eq!(once(async || is_send(coerced(7, &bank)).await.map_err(|error| error.to_string())).await, 7);
    assert_eq!(once(async || is_send(generic("a", ["b".to_owned(), "c".to_owned()])).await).await, 2);
    assert_eq!(once(async || is_send(Acme { name: "acme".to_owned(), count: 1 }.method(2)).await).await, 3);
    assert_eq!(once(async || Acme { name: "acme".to_owned(), count: 1 }.work(2).await).await, 3);
    assert_eq!(once(async || not_send(2).await).await, 3);
    assert_eq!(bank.charges(), 5);
}

#[tokio::test]
async fn the_error_of_a_phase_leaves_its_function() {
    let bank = Bank::default();
    let error = coerced(101, &bank).await.expect_err("the bank refuses");
    assert!(error.is::<Refused>(), "{error}");
    let error = coerced(0, &bank).await.expect_err("nothing is charged");
    assert!(error.is::<Refused>(), "{error}");
    assert_eq!(bank.charges(), 1);
}
