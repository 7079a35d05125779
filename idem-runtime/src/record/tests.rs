//! The decision table, row by row.

use super::*;

const NOW: i64 = 1_700_000_000_000_000;
const FOREIGN: Duration = Duration::from_mins(15);
const AGE: i64 = 900_000_000;
const SHAPE: &str = "billing:<>:<>";

fn job(mode: Mode, policy: OnStale, limit: u32) -> Job {
    let template = &["billing:", ":", ""];
    let job = match mode {
        Mode::LockFirst => Job::lock_first("charge", template, "app", "app.rs", 1),
        Mode::RecordAfter => Job::record_after("charge", template, "app", "app.rs", 1),
        Mode::Transactional => Job::transactional("charge", template, "app", "app.rs", 1),
    };
    job.on_stale(policy).max_takeovers(limit)
}

fn row(status: &str) -> Record {
    Record {
        key: "billing:42:2024-06".to_owned(),
        status: Status::from(status),
        job: None,
        template: None,
        mode: None,
        on_stale: None,
        owner: None,
        fence: 1,
        attempt: 1,
        takeovers: 0,
        lease_until: None,
        fingerprint: None,
        result: None,
        error: None,
        worker: None,
        expires_at: None,
        alerted_at: None,
        created_at: NOW,
        completed_at: None,
        now: NOW,
        phases: Vec::new(),
    }
}

fn text(word: Option<&str>) -> Option<String> {
    word.map(ToOwned::to_owned)
}

const STATUSES: [&str; 6] = ["processing", "completed", "failed", "released", "needs_review", "paused"];

/// A claim's end and its birth, and for how long its holder still counts as alive.
const CLAIMS: [(Option<i64>, i64, i64); 8] = [
    (Some(NOW + 5_000_000), NOW - 2 * AGE, 5_000_000),
    (Some(NOW + 1), NOW, 1),
    (Some(NOW), NOW - 1, 0),
    (Some(NOW - 1), NOW - 1, 0),
    (Some(0), NOW, 0),
    (None, NOW, AGE),
    (None, NOW - AGE + 1, 1),
    (None, NOW - AGE, 0),
];

/// The row's word, the caller's policy, and how both together let a stale claim be taken over, if they do.
const POLICIES: [(Option<&str>, OnStale, Option<Standing>); 15] = [
    (None, OnStale::Retry, Some(Standing::Stale)),
    (None, OnStale::Probe, Some(Standing::Doubtful)),
    (None, OnStale::Alert, None),
    (Some("retry"), OnStale::Retry, Some(Standing::Stale)),
    (Some("retry"), OnStale::Probe, Some(Standing::Doubtful)),
    (Some("retry"), OnStale::Alert, None),
    (Some("probe"), OnStale::Retry, None),
    (Some("probe"), OnStale::Probe, Some(Standing::Doubtful)),
    (Some("probe"), OnStale::Alert, None),
    (Some("alert"), OnStale::Retry, None),
    (Some("alert"), OnStale::Probe, None),
    (Some("alert"), OnStale::Alert, None),
    (Some("a word of tomorrow"), OnStale::Retry, None),
    (Some("a word of tomorrow"), OnStale::Probe, None),
    (Some("a word of tomorrow"), OnStale::Alert, None),
];

/// The takeovers so far, the limit, and whether one more is within it.
const TAKEOVERS: [(i32, u32, bool); 5] =
    [(0, 5, true), (4, 5, true), (5, 5, false), (6, 5, false), (0, 0, false)];

/// The row's fingerprint, the call's, and whether they contradict each other.
const FINGERPRINTS: [(Option<&str>, Option<&str>, bool); 5] = [
    (None, None, false),
    (None, Some("a"), false),
    (Some("a"), None, false),
    (Some("a"), Some("a"), false),
    (Some("a"), Some("b"), true),
];

const EXPIRIES: [(Option<i64>, bool); 4] =
    [(None, false), (Some(NOW + 1), false), (Some(NOW), true), (Some(NOW - 1), true)];

const TEMPLATES: [(Option<&str>, bool); 3] =
    [(None, false), (Some(SHAPE), false), (Some("invoice:<>:<>"), true)];

fn every_row(mut see: impl FnMut(&Record, &Situation)) {
    for status in STATUSES {
        for (lease_until, created_at, left) in CLAIMS {
            for owned in [true, false] {
                for (expires_at, expired) in EXPIRIES {
                    for (template, foreign_template) in TEMPLATES {
                        let record = Record {
                            lease_until,
                            created_at,
                            expires_at,
                            owner: owned.then(|| "0f".repeat(16)),
                            template: text(template),
                            ..row(status)
                        };
                        let situation = Situation { status, left, owned, expired, foreign_template };
                        see(&record, &situation);
                    }
                }
            }
        }
    }
}

#[derive(Debug)]
struct Situation {
    status: &'static str,
    left: i64,
    owned: bool,
    expired: bool,
    foreign_template: bool,
}

const MODES: [Mode; 3] = [Mode::LockFirst, Mode::RecordAfter, Mode::Transactional];

/// The table as the documentation has it: one line for each kind of row, with the answers of `lock_first`,
/// `record_after` and `transactional`. Exactly one line speaks of any row, so their order means nothing.
fn table(s: &Situation, heir: Option<Standing>, mismatch: bool) -> [Decision; 3] {
    use Decision::{Busy, Conflict, Failed, Flag, Mismatch, Replay, Review, Run};

    let past_ttl = s.expired && ["completed", "failed"].contains(&s.status);
    let free = past_ttl || s.status == "released";
    let ours = s.status != "paused" && !free && !s.foreign_template;
    let same = ours && !mismatch;
    let claim = same && s.status == "processing";
    let (alive, stale) = (claim && s.left > 0, claim && s.left == 0);
    let retry_after = Some(Duration::from_micros(s.left.unsigned_abs()));
    let conflict = Conflict { template: "invoice:<>:<>".to_owned() };
    let all = |decision: Decision| [decision.clone(), decision.clone(), decision];
    let claimed = || Run(Standing::Claimed);

    let lines = [
        (s.status == "released", all(Run(Standing::Released))),
        (past_ttl, all(Run(Standing::Expired))),
        (s.status == "paused", all(Busy { retry_after: None })),
        (s.status != "paused" && !free && s.foreign_template, all(conflict)),
        (ours && mismatch, all(Mismatch)),
        (same && s.status == "completed", all(Replay)),
        (same && s.status == "failed", all(Failed)),
        (same && s.status == "needs_review", all(Review)),
        (alive, [Busy { retry_after }, claimed(), Busy { retry_after }]),
        (stale && s.owned, [heir.map_or(Flag, Run), claimed(), Flag]),
        (stale && !s.owned, [Flag, claimed(), Flag]),
    ];
    let mut speaking = lines.into_iter().filter(|(speaks, ..)| *speaks);
    let (_, answers) = speaking.next().unwrap_or_else(|| panic!("no line for {s:?}"));
    assert!(speaking.next().is_none(), "two lines for {s:?}");
    answers
}

#[test]
fn every_row_is_decided_as_the_table_says() {
    let mut seen = 0_u32;
    for (theirs, ours, heir) in POLICIES {
        for (takeovers, limit, more) in TAKEOVERS {
            let jobs = MODES.map(|mode| job(mode, ours, limit));
            for (stored, fingerprint, mismatch) in FINGERPRINTS {
                every_row(|record, situation| {
                    let record = Record {
                        on_stale: text(theirs),
                        takeovers,
                        fingerprint: text(stored),
                        ..record.clone()
                    };
                    let right = table(situation, heir.filter(|_| more), mismatch);
                    for (job, right) in jobs.iter().zip(right) {
                        let terms = Terms { job, fingerprint, foreign_stale_after: FOREIGN, under: None };
                        let decided = decide(Some(&record), NOW, &terms);
                        assert_eq!(decided, right, "{record:#?} met by {job:?} with {fingerprint:?}");
                        seen += 1;
                    }
                });
            }
        }
    }
    assert_eq!(seen, 6 * 8 * 2 * 4 * 3 * 15 * 5 * 5 * 3);
}

#[test]
fn an_absent_row_runs_whatever_the_job() {
    for (_, policy, _) in POLICIES {
        for mode in MODES {
            let job = job(mode, policy, 0);
            let terms =
                Terms { job: &job, fingerprint: Some("a"), foreign_stale_after: FOREIGN, under: None };
            assert_eq!(decide(None, NOW, &terms), Decision::Run(Standing::Absent));
        }
    }
}

#[test]
fn a_record_gives_way_only_to_what_may_stand_in_its_place() {
    let job = job(Mode::RecordAfter, OnStale::Alert, 5);
    every_row(|record, s| {
        let past_ttl = s.expired && ["completed", "failed"].contains(&s.status);
        let (completion, failure) = match s.status {
            _ if past_ttl => (true, true),
            "released" => (true, true),
            "processing" => (!s.foreign_template, !s.foreign_template),
            "failed" => (!s.foreign_template, false),
            _ => (false, false),
        };
        assert_eq!(gives_way(record, NOW, true, &job, None), completion, "{record:#?}");
        assert_eq!(gives_way(record, NOW, false, &job, None), failure, "{record:#?}");
    });
}

const OURS: &str = "aa";
const FENCE: i64 = 10;
const BORN: i64 = 7;

/// What a phase's row says of the life of its job and of its fence, who enters it, and whether that is another life.
const LIVES: [(Option<i64>, i64, Option<i64>, bool); 9] = [
    (Some(BORN), 9, Some(BORN), false),
    (Some(BORN), FENCE, Some(BORN), false),
    (Some(BORN), 11, Some(BORN), false),
    (Some(BORN - 1), 11, Some(BORN), true),
    (Some(BORN + 1), 9, Some(BORN), true),
    (None, 0, Some(BORN), false),
    (None, 0, None, false),
    (Some(BORN), 9, None, true),
    (Some(BORN), FENCE, None, false),
];

#[test]
fn a_phase_of_another_life_of_its_job_is_none_and_a_claim_of_another_execution_is_stale() {
    for mode in MODES {
        let job = job(mode, OnStale::Retry, 5);
        for (birth, fence, born, outlived) in LIVES {
            let under = Some(Under { owner: OURS, fence: FENCE, born });
            let terms = Terms { job: &job, fingerprint: None, foreign_stale_after: FOREIGN, under };
            every_row(|record, s| {
                for owner in [record.owner.clone(), record.owner.as_ref().map(|_| OURS.to_owned())] {
                    let record = Record {
                        owner,
                        fence,
                        fingerprint: birth.map(|born| born.to_string()),
                        ..record.clone()
                    };
                    let succeeded =
                        record.owner.as_ref().is_some_and(|owner| owner != OURS) && record.fence <= FENCE;
                    let stopped = Record {
                        lease_until: if succeeded { Some(NOW) } else { record.lease_until },
                        ..record.clone()
                    };
                    let right = match s.status {
                        "paused" => Decision::Busy { retry_after: None },
                        _ if outlived => Decision::Run(Standing::Expired),
                        _ => decide(Some(&stopped), NOW, &Terms { under: None, ..terms }),
                    };
                    assert_eq!(decide(Some(&record), NOW, &terms), right, "{record:#?}");
                    let gives_way_as_any = gives_way(&record, NOW, true, &job, None);
                    let right = s.status != "paused" && (outlived || gives_way_as_any);
                    assert_eq!(gives_way(&record, NOW, true, &job, under), right, "{record:#?}");
                }
            });
        }
    }
}

#[test]
fn the_evidence_names_the_phase_that_a_job_is_in_or_finished_last() {
    let phase = |name: &str, status: &str, fence: i64, completed_at: Option<i64>| Record {
        key: format!("order:17/{name}"),
        fence,
        completed_at,
        fingerprint: Some(NOW.to_string()),
        ..row(status)
    };
    let reserve = phase("reserve", "completed", 9, Some(NOW - 5));
    let charge = phase("charge", "processing", 9, None);
    let line = phase("line:42", "completed", 9, Some(NOW - 3));
    let former = Record { fingerprint: Some("1".to_owned()), ..phase("mail", "processing", 12, None) };
    let evidence = |phases: &[&Record]| {
        let phases = phases.iter().map(|&phase| phase.clone()).collect();
        Record { phases, owner: Some("aa".to_owned()), ..row("processing") }.evidence()
    };
    assert!(evidence(&[&reserve, &charge, &former]).contains("in its phase `charge` (processing)"));
    assert!(evidence(&[&reserve, &line]).contains("after its phase `line:42` (completed)"));
    assert!(!evidence(&[&former]).contains("phase"));
    let long =
        Record { key: "a%#b".to_owned(), template: Some("order:<>/line:<>".to_owned()), ..row("completed") };
    assert_eq!((long.phase_name(), long.is_phase()), (Some("line:<>"), true));
    assert_eq!((row("completed").phase_name(), row("completed").is_phase()), (None, false));
}

#[test]
fn a_holder_is_seen_alive_while_its_lease_runs() {
    every_row(|record, s| {
        let claimed = s.status == "processing" && s.left > 0;
        let reviewed = s.status == "needs_review" && record.lease_until.is_some() && s.left > 0;
        assert_eq!(record.is_alive(NOW, FOREIGN), claimed || reviewed, "{record:#?}");
    });
}

#[test]
fn deadlines_beyond_the_clock_neither_wrap_nor_panic() {
    let extremes = [i64::MIN, -1, 0, i64::MAX];
    let job = job(Mode::LockFirst, OnStale::Retry, 5);
    let terms = Terms { job: &job, fingerprint: None, foreign_stale_after: Duration::MAX, under: None };
    for (lease_until, created_at) in extremes.into_iter().flat_map(|a| extremes.map(|b| (a, b))) {
        for lease_until in [Some(lease_until), None] {
            let record = Record { lease_until, created_at, takeovers: -1, ..row("processing") };
            let alive = record.is_alive(NOW, terms.foreign_stale_after);
            assert_eq!(alive, matches!(decide(Some(&record), NOW, &terms), Decision::Busy { .. }));
            assert!(record.evidence().contains("without owner"));
            let owned = Record { owner: Some("0f".repeat(16)), ..record };
            assert!(owned.evidence().contains("attempt 1"));
        }
    }
    assert_eq!(micros(Duration::MAX), i64::MAX);
}

#[test]
fn a_status_reads_back_as_it_was_written() {
    for word in STATUSES.into_iter().chain(["", "COMPLETED", "completed "]) {
        assert_eq!(Status::from(word).as_str(), word);
    }
    assert_eq!(Status::from("COMPLETED"), Status::Other("COMPLETED".to_owned()));
}
