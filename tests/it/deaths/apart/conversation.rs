//! A process that dies in the midst of its conversation with the server: each of the server's replies in turn is lost
//! on its way, and the process with it. What it was the reply to has been done.

use std::{env, thread, time::Duration};

use idem_runtime::{Resolution, record::Status};
use idem_tests::{Backend, Child, Proxy, child::Parent};
use tokio::time::sleep;

use crate::{
    cases::{
        call::executed,
        life::plain,
        site::{Site, URL, Worker},
    },
    deaths::{
        answer::Answer,
        jobs::{Call, Ends, Job, parsed},
    },
};

const DEED: &str = "IDEM_DEATHS_DEED";
const JOB: &str = "IDEM_DEATHS_JOB";
const ENDS: &str = "IDEM_DEATHS_ENDS";
const ID: &str = "IDEM_DEATHS_ID";

/// What a process does that dies meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    SetUp,
    Job(Job, Ends),
    Purge,
    Resolve,
    Forget,
}

impl Deed {
    fn name(self) -> String {
        match self {
            Self::Job(..) => "Job".to_owned(),
            other => format!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn acts() {
    let Some(parent) = Parent::attach() else { return };
    let deed = env::var(DEED).expect("set by the parent");
    let id = env::var(ID).expect("set by the parent");
    if deed == "SetUp" {
        parent.say("ready");
        let _ = parent.hear();
    }
    let w = Worker::of_parent().await;
    if deed != "SetUp" {
        parent.say("ready");
        let _ = parent.hear();
    }
    match deed.as_str() {
        "SetUp" => {}
        "Purge" => drop(w.idem.purge().await.expect("a purge")),
        "Resolve" => {
            let deed = w.idem.resolve(format!("life-plain:{id}"), Resolution::Retry).note("not seen");
            drop(deed.await.expect("an answer"));
        }
        "Forget" => {
            let deed = w.idem.forget(format!("life-plain:{id}")).note("test data");
            drop(deed.await.expect("an answer"));
        }
        _ => {
            let ends = parsed(ENDS, &[Ends::Well, Ends::Badly]);
            let call = Call { w: &w, backend: Backend::Memory, url: "", id: &id, ends, name: "itself" };
            assert_eq!(parsed(JOB, Job::ALL).call(call).await.0.is_ok(), ends == Ends::Well);
        }
    }
    w.effect(&format!("done {id}"));
    let _ = parent.hear();
}

fn actor(site: &Site, deed: Deed, id: &str, url: &str) -> Child {
    let mut command = site.child("deaths::apart::conversation::acts");
    command.env(URL, url).env(DEED, deed.name()).env(ID, id);
    if let Deed::Job(job, ends) = deed {
        command.env(JOB, format!("{job:?}")).env(ENDS, format!("{ends:?}"));
    }
    let mut child = Child::spawn(&mut command);
    child.expect("ready");
    child
}

/// Lets a process act, lose the reply after so many, and die. Whether it had done all before.
async fn dies_at_reply(site: &Site, deed: Deed, id: &str, spared: usize) -> bool {
    let proxy = Proxy::to(site.database.address().expect("a server"));
    let url = site.database.url_through(proxy.address()).expect("a server");
    let mut child = actor(site, deed, id, &url);
    proxy.swallow_replies_but(spared);
    let swallowed = proxy.reply_swallowed();
    child.say("go");
    let done = async {
        while site.effects(&format!("done {id}")) == 0 {
            sleep(Duration::from_millis(2)).await;
        }
    };
    let is_done = tokio::select! {
        () = swallowed => false,
        () = done => true,
    };
    child.kill();
    is_done
}

/// Kills a process at each reply, and judges each time what it left.
async fn at_each_reply(
    site: &Site,
    deed: Deed,
    mut before: impl AsyncFnMut(&str),
    mut judge: impl AsyncFnMut(&str),
) {
    for spared in 0..200 {
        let id = format!("reply-{spared}");
        before(&id).await;
        let is_done = dies_at_reply(site, deed, &id, spared).await;
        judge(&id).await;
        if is_done {
            assert!(spared > 1, "a conversation");
            return;
        }
    }
    panic!("{deed:?} does not come to its end");
}

async fn nothing(_: &str) {}

pub(super) async fn a_set_up_that_is_killed_at_any_reply_is_done_by_the_next(site: &Site) {
    let before = async |_: &str| site.clear().await;
    at_each_reply(site, Deed::SetUp, before, async |id| serves(site, id).await).await;
}

/// The next process finds all that it needs.
async fn serves(site: &Site, id: &str) {
    let w = site.worker().await;
    assert_eq!(executed(plain(&w, id)).await, id);
    w.idem.forget(format!("life-plain:{id}")).force().note("test data").await.expect("its companions");
    assert_eq!(site.number("SELECT count(*) FROM idempotency_keys_schema").await, 1);
}

/// There is no conversation to listen to: the moments are spread over what it takes.
pub(super) async fn a_set_up_that_is_killed_at_any_moment_is_done_by_the_next(site: &Site) {
    let url = site.database.url();
    for moment in 0..12 {
        site.clear().await;
        let id = format!("moment-{moment}");
        let mut child = actor(site, Deed::SetUp, &id, url);
        child.say("go");
        thread::sleep(Duration::from_micros(moment * 700));
        child.kill();
        serves(site, &id).await;
    }
}

/// What the deliveries after a death came to: at once, when the lease has ended, and the effects of all.
async fn deliveries(site: &Site, w: &Worker, job: Job, id: &str) -> (Answer, Answer, usize) {
    let deliver = async || {
        let url = site.database.url();
        let call = Call { w, backend: site.backend(), url, id, ends: Ends::Well, name: "heir" };
        let (result, outcome) = job.call(call).await;
        Answer::of(&result, outcome)
    };
    let at_once = deliver().await;
    let key = job.key(id);
    let held = format!("\"key\" = '{key}' AND status = 'processing'");
    site.execute(&format!("UPDATE idempotency_keys SET lease_until = 1 WHERE {held}")).await;
    let later = deliver().await;
    (at_once, later, site.effects(id))
}

/// The later it dies, the further the key is: free, held, done. Each of them comes.
fn comes_in_order(seen: &[Answer], steps: &[Answer]) {
    let mut seen = seen.to_vec();
    seen.dedup();
    assert_eq!(seen, steps);
}

pub(super) async fn a_job_that_is_killed_at_any_reply_has_one_effect_at_most(site: &Site) {
    let (w, mut seen) = (site.worker().await, Vec::new());
    at_each_reply(site, Deed::Job(Job::Alert, Ends::Well), nothing, async |id| {
        let (at_once, later, effects) = deliveries(site, &w, Job::Alert, id).await;
        let right = match (at_once, later) {
            (Answer::Runs | Answer::Replays, Answer::Replays) => effects == 1,
            (Answer::InProgress, Answer::NeedsReview) => effects <= 1,
            _ => false,
        };
        assert!(right, "{id}: {at_once:?} {later:?} {effects}");
        seen.push(at_once);
    })
    .await;
    comes_in_order(&seen, &[Answer::Runs, Answer::InProgress, Answer::Replays]);
}

pub(super) async fn a_job_that_is_killed_at_any_reply_is_taken_over(site: &Site) {
    let (w, mut seen) = (site.worker().await, Vec::new());
    at_each_reply(site, Deed::Job(Job::Retry, Ends::Well), nothing, async |id| {
        let (at_once, later, effects) = deliveries(site, &w, Job::Retry, id).await;
        let right = match (at_once, later) {
            (Answer::Runs | Answer::Replays, Answer::Replays) => effects == 1,
            (Answer::InProgress, Answer::TakesOver) => effects == 1 || effects == 2,
            _ => false,
        };
        assert!(right, "{id}: {at_once:?} {later:?} {effects}");
        seen.push(at_once);
    })
    .await;
    comes_in_order(&seen, &[Answer::Runs, Answer::InProgress, Answer::Replays]);
}

pub(super) async fn a_failing_job_that_is_killed_at_any_reply_is_held_or_released(site: &Site) {
    let (w, mut seen) = (site.worker().await, Vec::new());
    at_each_reply(site, Deed::Job(Job::Release, Ends::Badly), nothing, async |id| {
        let (at_once, later, effects) = deliveries(site, &w, Job::Release, id).await;
        let right = match (at_once, later) {
            // It had not begun, or it was released after its effect.
            (Answer::Runs, Answer::Replays) => effects == 1 || effects == 2,
            (Answer::InProgress, Answer::NeedsReview) => effects <= 1,
            _ => false,
        };
        assert!(right, "{id}: {at_once:?} {later:?} {effects}");
        seen.push(at_once);
    })
    .await;
    comes_in_order(&seen, &[Answer::Runs, Answer::InProgress, Answer::Runs]);
}

pub(super) async fn a_recorded_effect_that_is_killed_at_any_reply_is_never_lost(site: &Site) {
    let (w, mut seen) = (site.worker().await, Vec::new());
    at_each_reply(site, Deed::Job(Job::After, Ends::Well), nothing, async |id| {
        let (at_once, later, effects) = deliveries(site, &w, Job::After, id).await;
        let right = match (at_once, later) {
            (Answer::Runs, Answer::Replays) => effects == 1 || effects == 2,
            (Answer::Replays, Answer::Replays) => effects == 1,
            _ => false,
        };
        assert!(right, "{id}: {at_once:?} {later:?} {effects}");
        seen.push(at_once);
    })
    .await;
    comes_in_order(&seen, &[Answer::Runs, Answer::Replays]);
}

/// The fence of a collected key is not forgotten, whoever died.
pub(super) async fn a_purge_that_is_killed_at_any_reply_leaves_the_rest_to_the_next(site: &Site) {
    const OLD: &str = "SELECT count(*) FROM idempotency_keys WHERE expires_at = 1";
    let w = site.worker().await;
    let before = async |id: &str| {
        for n in 0..3 {
            let id = format!("{id}-{n}");
            executed(plain(&w, &id)).await;
            let ahead = format!("expires_at = 1, fence = {} + 3600000000", site.now());
            site.set(&format!("life-plain:{id}"), &ahead).await;
        }
    };
    at_each_reply(site, Deed::Purge, before, async |id| {
        assert!([0, 3].contains(&site.number(OLD).await), "{id}: a batch is whole");
        let ahead = site.number(&format!("SELECT {} + 3600000000", site.now())).await;
        w.idem.purge().await.expect("a purge");
        assert_eq!(site.number(OLD).await, 0);
        for n in 0..3 {
            let id = format!("{id}-{n}");
            assert_eq!(executed(plain(&w, &id)).await, id);
            let fence = w.row(&format!("life-plain:{id}")).await.fence;
            assert!(fence > ahead - 60_000_000, "{id}: {fence} is no more than {ahead}");
        }
    })
    .await;
}

async fn in_review(site: &Site, id: &str) {
    site.execute(&format!(
        "INSERT INTO idempotency_keys (\"key\", status) VALUES ('life-plain:{id}', 'needs_review')"
    ))
    .await;
}

async fn lines(site: &Site, id: &str) -> i64 {
    let lines = "SELECT count(*) FROM idempotency_keys_audit WHERE \"key\" =";
    site.number(&format!("{lines} 'life-plain:{id}'")).await
}

pub(super) async fn a_resolution_that_is_killed_at_any_reply_leaves_its_line_or_nothing(site: &Site) {
    let (w, mut seen) = (site.worker().await, Vec::new());
    let before = async |id: &str| in_review(site, id).await;
    at_each_reply(site, Deed::Resolve, before, async |id| {
        let status = w.row(&format!("life-plain:{id}")).await.status;
        let lines = lines(site, id).await;
        assert!(
            matches!((&status, lines), (Status::Released, 1) | (Status::NeedsReview, 0)),
            "{status} {lines}"
        );
        seen.push(lines);
    })
    .await;
    seen.dedup();
    assert_eq!(seen, [0, 1]);
}

pub(super) async fn a_key_that_is_forgotten_when_its_person_dies_leaves_its_line_or_nothing(site: &Site) {
    let (w, mut seen) = (site.worker().await, Vec::new());
    let before = async |id: &str| in_review(site, id).await;
    at_each_reply(site, Deed::Forget, before, async |id| {
        let is_there = w.find(&format!("life-plain:{id}")).await.is_some();
        let lines = lines(site, id).await;
        assert_eq!(lines, i64::from(!is_there));
        seen.push(lines);
    })
    .await;
    seen.dedup();
    assert_eq!(seen, [0, 1]);
}
