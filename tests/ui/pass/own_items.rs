//! Constants, statics, types and functions of the user's whose names equal ours.

#![allow(non_upper_case_globals, non_camel_case_types)]

use super::{memory, once, once_sync};

mod here {
    use idem_runtime::{Error, idempotent};

    use super::memory;

    pub(super) const JOB: u8 = 1;
    const call: u8 = 2;
    const key: u8 = 3;
    static result: u8 = 4;
    const error: u8 = 5;
    const tx: u8 = 6;
    const body: u8 = 7;

    pub(super) struct Job;
    struct Call;
    struct JobRef(u8);
    enum OnStale {
        Retry,
    }

    fn run(number: u8) -> u8 {
        number + 1
    }

    fn stored(number: u8) -> u8 {
        run(number)
    }

    fn none() -> u8 {
        stored(0)
    }

    mod inventory {
        pub(super) const submit: u8 = 8;
    }

    mod __private {
        pub(super) const stored: u8 = 9;
    }

    #[idempotent(key = "own_items:first:<id>", on_stale = "retry", key_fn = render, idem = memory())]
    pub(super) async fn first(id: u8) -> Result<u8, Error> {
        tokio::task::yield_now().await;
        let OnStale::Retry = OnStale::Retry;
        Ok(id + JOB + call + key + result + error + tx + body)
    }

    #[idempotent(key = "own_items:second:<id>", idem = memory())]
    pub(super) fn second(id: u8) -> Result<u8, Error> {
        let (_, _, JobRef(number)) = (Job, Call, JobRef(id));
        Ok(number + none() + inventory::submit + __private::stored)
    }
}

#[tokio::test]
async fn b2_items_may_have_any_name() {
    assert_eq!(once(async || here::first(1).await).await, 29);
    assert_eq!(once_sync(|| here::second(1)), 19);
    assert_eq!(here::render(&1).expect("a key").to_string(), "own_items:first:1");
    let here::Job = here::Job;
    assert_eq!(here::JOB, 1);
}
