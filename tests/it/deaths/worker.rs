//! The process that is killed or stopped.

use std::env;

use idem_runtime::Builder;
use idem_tests::{Backend, Child, Ledger, child::Parent};

use super::{
    answer::Answer,
    jobs::{Call, Ends, Job, parsed},
    stop::{SPARED, STOP, Stop, watch},
};
use crate::cases::site::{Site, URL, Worker};

const JOB: &str = "IDEM_DEATHS_JOB";
const ENDS: &str = "IDEM_DEATHS_ENDS";
const ID: &str = "IDEM_DEATHS_ID";
const NAME: &str = "IDEM_DEATHS_NAME";

/// A delivery in a process of its own, which has come to the point where it stops.
pub(super) fn stopped_at(site: &Site, job: Job, ends: Ends, stop: Stop, id: &str, name: &str) -> Child {
    let mut command = site.child("deaths::worker::delivers");
    command.env(JOB, format!("{job:?}")).env(ENDS, format!("{ends:?}")).env(ID, id).env(NAME, name);
    let (place, spared) = stop.place();
    command.env(STOP, format!("{place:?}")).env(SPARED, spared.to_string());
    let mut child = Child::spawn(&mut command);
    assert_eq!(child.expect("at"), format!("{place:?}"));
    child
}

/// A worker that tells the ledger when it tells a person.
pub(super) fn telling(builder: Builder, ledger: &Ledger) -> Builder {
    let ledger = Ledger::open(ledger.path());
    builder.on_alert(move |alerts| {
        for alert in alerts {
            ledger.record(format!("told {}", alert.key));
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn delivers() {
    let Some(parent) = Parent::attach() else { return };
    let url = env::var(URL).expect("set by the parent");
    let backend = match url.split(':').next() {
        Some("sqlite") => Backend::Sqlite,
        Some("mysql") => Backend::Mysql,
        _ => Backend::Postgres,
    };
    let w = Worker::of_parent_by(telling).await;
    watch();
    let job = parsed(JOB, Job::ALL);
    let ends = parsed(ENDS, &[Ends::Well, Ends::Badly, Ends::Early]);
    let id = env::var(ID).expect("set by the parent");
    let name = env::var(NAME).expect("set by the parent");
    let call = Call { w: &w, backend, url: &url, id: &id, ends, name: &name };
    let (result, outcome) = job.call(call).await;
    if env::var(STOP).as_deref() == Ok("Told") {
        // A person is told behind the call.
        std::future::pending::<()>().await;
    }
    parent.say(&format!("ended {:?}", Answer::of(&result, outcome)));
}
