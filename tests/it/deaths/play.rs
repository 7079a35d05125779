//! Plays a line of the table.

use std::time::Duration;

use idem_tests::{Backend, Child};

use super::{
    answer::Answer,
    jobs::{Call, Ends},
    stop::Stop,
    table::{Before, Group, Line, line},
    worker::{stopped_at, telling},
};
use crate::cases::site::{Site, Worker};

/// Who returned a value: a worker before the one that dies, that one, or one that came after.
const BEFORE: &str = "before";
pub(super) const ITSELF: &str = "itself";
const HEIR: &str = "heir";

pub(super) async fn plays(backend: Backend, groups: &'static [Group], (group, name): (&str, &str)) {
    let (group, line) = line(groups, (group, name));
    let id = format!("{}.{name}", group.name);
    let play = async |site: &Site| Scene::on(site, group, &id).await.plays(line).await;
    Site::plays(backend, play).await;
}

struct Scene<'a> {
    site: &'a Site,
    /// The worker of all deliveries that do not die.
    w: Worker,
    group: &'a Group,
    id: &'a str,
    key: String,
    /// The row that the line tells of: the key's, or that of its phase.
    row: String,
    /// Whose value the row has.
    whose: &'static str,
}

impl<'a> Scene<'a> {
    async fn on(site: &'a Site, group: &'a Group, id: &'a str) -> Self {
        let w = site.worker_by(|builder| {
            let builder = telling(builder, &site.ledger);
            builder.watch_every(Duration::from_millis(50)).untold_for(Duration::from_millis(300))
        });
        let w = w.await;
        if group.job.is_transactional() {
            site.execute("CREATE TABLE effects (what varchar(200))").await;
        }
        let key = group.job.key(id);
        let row = group.job.phase(id).unwrap_or_else(|| key.clone());
        Self { site, w, group, id, key, row, whose: ITSELF }
    }

    async fn plays(mut self, line: &Line) {
        self.comes_before().await;
        let Group { job, ends, .. } = *self.group;
        let mut worker = stopped_at(self.site, job, ends, line.stop, self.id, ITSELF);
        if line.own_answer().is_some() {
            worker.stop();
        } else {
            worker.kill();
        }
        let [at_once, later, again] = line.deliveries();
        assert_eq!(self.deliver().await, at_once, "at once");
        self.end_lease().await;
        assert_eq!(self.deliver().await, later, "when the lease has ended");
        if let Some(own) = line.own_answer() {
            assert_eq!(goes_on(&mut worker), format!("{own:?}"), "of the worker that goes on");
        }
        assert_eq!(self.deliver().await, again, "once more");
        self.ends_as(line).await;
    }

    async fn comes_before(&self) {
        let Group { job, before, .. } = *self.group;
        match before {
            Before::Nothing => {}
            Before::Died => {
                stopped_at(self.site, job, Ends::Well, Stop::AfterEffect, self.id, BEFORE).kill();
                self.end_lease().await;
            }
            Before::Failed => assert_eq!(self.call(Ends::Badly, BEFORE).await.0, Answer::Fails),
            Before::Expired => {
                assert_eq!(self.call(Ends::Well, BEFORE).await.0, Answer::Runs);
                self.site.set(&self.key, "expires_at = 1").await;
            }
        }
    }

    /// A delivery whose body does well, if it runs; whose value it answers is checked.
    async fn deliver(&mut self) -> Answer {
        let before = self.site.effects(self.id);
        let (answer, value) = self.call(Ends::Well, HEIR).await;
        // A job may go on behind a phase that was another worker's.
        if self.site.effects(self.id) > before {
            self.whose = HEIR;
        }
        let has_value = answer.counts() || answer == Answer::Replays;
        assert_eq!(value.as_deref(), has_value.then_some(self.whose), "whose value");
        answer
    }

    async fn call(&self, ends: Ends, name: &str) -> (Answer, Option<String>) {
        let (backend, url) = (self.site.backend(), self.site.database.url());
        let call = Call { w: &self.w, backend, url, id: self.id, ends, name };
        let (result, outcome) = self.group.job.call(call).await;
        (Answer::of(&result, outcome), result.ok())
    }

    /// Lets the lease be over that the key is held under.
    async fn end_lease(&self) {
        let held = format!("\"key\" = '{}' AND status = 'processing'", self.key);
        self.site.execute(&format!("UPDATE idempotency_keys SET lease_until = 1 WHERE {held}")).await;
    }

    async fn ends_as(&self, line: &Line) {
        assert_eq!(self.site.effects(self.id), line.ran, "how often the body came to its effect");
        let effects = if self.group.job.is_transactional() {
            let rows = format!("SELECT count(*) FROM effects WHERE what = '{}'", self.id);
            usize::try_from(self.site.number(&rows).await).expect("a count")
        } else {
            line.ran
        };
        assert_eq!(effects, line.effects, "effects");
        if line.status == "needs_review" {
            self.is_told(line).await;
        }
        let row = self.w.row(&self.row).await;
        assert_eq!((row.status.as_str(), row.attempt), (line.status, line.attempt), "{row:?}");
        assert_eq!(row.error.as_deref(), line.error, "{row:?}");
        let value = (line.status == "completed").then(|| format!("\"{}\"", self.whose));
        assert_eq!(row.result, value);
    }

    /// A person is told, whoever died, and twice if nobody could know that they were.
    async fn is_told(&self, line: &Line) {
        let key = &self.row;
        self.w.row_such_that(key, "told", |row| row.alerted_at.is_some()).await;
        let told = self.site.effects(&format!("told {key}"));
        assert!(told > usize::from(line.stop == Stop::Told), "a person was told {told} times");
    }
}

/// A stopped worker goes on; what it comes to.
fn goes_on(worker: &mut Child) -> String {
    worker.resume();
    worker.say("go on");
    let answer = worker.expect("ended");
    assert!(worker.wait().success(), "{}", worker.transcript());
    answer
}
