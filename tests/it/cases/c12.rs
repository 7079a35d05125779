//! Time: only the database's clock decides, whatever zone or clock a worker has, to the end of what it can count.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use idem_runtime::{Error, ErrorKind, Outcome, idempotent, with_outcome};
use idem_tests::{Backend, Child, child::Parent};
use tokio::time::sleep;

use super::{
    call::{executed, refused, replayed, took_over},
    gate::Gate,
    site::{Connected, Site, Worker},
};

#[idempotent(key = "c12:<id>", stale_after = "60s", heartbeat = false, on_stale = "retry", idem = w.idem)]
async fn minute(w: &Worker, id: &str, gate: &Gate) -> Result<usize, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(w.effects(id))
}

#[idempotent(key = "c12-second:<id>", stale_after = "1s", heartbeat = false, on_stale = "retry", idem = w.idem)]
async fn second(w: &Worker, id: &str, gate: &Gate) -> Result<usize, Error> {
    w.effect(id);
    gate.pass().await;
    Ok(w.effects(id))
}

#[idempotent(key = "c12-long:<id>", ttl = "7305d", idem = w.idem)]
async fn twenty_years(w: &Worker, id: &str) -> Result<usize, Error> {
    w.effect(id);
    Ok(w.effects(id))
}

#[idempotent(key = "c12-mail:<id>", mode = "record_after", ttl = "7305d", idem = w.idem)]
async fn mail_of_twenty_years(w: &Worker, id: &str) -> Result<usize, Error> {
    w.effect(id);
    Ok(w.effects(id))
}

/// The key, the row and the claim belong to the database, and so does the time: there is no clock to be wrong.
#[test]
fn nothing_in_the_runtime_asks_for_the_time_of_day() {
    fn search(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                search(&path, found);
                continue;
            }
            // The table in memory is its own database, with its own clock.
            if path.ends_with("store/memory.rs") {
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source");
            for word in [
                "SystemTime::now",
                "UNIX_EPOCH",
                "::now_utc",
                "::now_local",
                "Utc::now",
                "Local::now",
                "Zoned::now",
            ] {
                if text.contains(word) {
                    found.insert(format!("{}: {word}", path.display()));
                }
            }
        }
    }
    let mut found = BTreeSet::new();
    search(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../idem-runtime/src"), &mut found);
    assert!(found.is_empty(), "{found:?}");
}

const ZONES: [&str; 5] = ["UTC", "Asia/Kolkata", "America/St_Johns", "Pacific/Chatham", "Europe/Berlin"];

/// What a worker sees of a claim and of a row that was written by hand.
async fn sight(w: &Worker) -> String {
    let gate = Gate::new();
    let (result, outcome) = with_outcome(minute(w, "held", &gate)).await;
    let left = result.expect_err("held").retry_after().expect("an end");
    assert_eq!(outcome, Some(Outcome::Refused(ErrorKind::InProgress)));
    assert!(left > Duration::from_secs(1) && left <= Duration::from_mins(1), "{left:?}");
    let (held, hand) = (w.row("c12:held").await, w.row("c12:hand").await);
    format!("{:?} {} {} {:?}", held.lease_until, held.created_at, hand.created_at, hand.completed_at)
}

async fn write_by_hand(site: &Site) {
    site.execute(
        "INSERT INTO idempotency_keys (\"key\", status, completed_at) VALUES ('c12:hand', 'completed', CURRENT_TIMESTAMP)",
    )
    .await;
}

pub(super) async fn c12_workers_in_other_zones_agree(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let mut running = Box::pin(minute(&w, "held", &gate));
    gate.stops(&mut running).await;
    write_by_hand(site).await;
    let here = sight(&w).await;
    let mut children = Vec::new();
    for zone in ZONES {
        let mut child = Child::spawn(site.child("cases::c12::a_worker_elsewhere").env("TZ", zone));
        assert_eq!(child.expect("sees"), here, "{zone}");
        children.push(child);
    }
    // When it is over by the database's time, it is over for all, and one of them has it.
    site.end_lease(&w, "c12:held").await;
    let mut heirs = 0;
    for child in &mut children {
        child.say("again");
    }
    for child in &mut children {
        match child.expect("had").as_str() {
            "TookOver" => heirs += 1,
            "Replayed" | "Refused(InProgress)" => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!((heirs, site.effects("held")), (1, 2));
    gate.open();
    assert_eq!(running.await.expect_err("it was taken over").kind(), ErrorKind::ClaimLost);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn a_worker_elsewhere() {
    let Some(parent) = Parent::attach() else { return };
    let w = Worker::of_parent().await;
    parent.say(&format!("sees {}", sight(&w).await));
    assert_eq!(parent.hear(), "again");
    let gate = Gate::new();
    gate.open();
    let (_, outcome) = with_outcome(minute(&w, "held", &gate)).await;
    parent.say(&format!("had {:?}", outcome.expect("a job was entered")));
}

/// A session of somebody else, with a local time of its own and its own way to write it.
async fn settled_in(site: &Site, zone: &str) -> Connected {
    let mut hand = site.connection().await;
    if site.backend() == Backend::Mysql {
        hand.execute(&format!("SET SESSION time_zone = '{zone}'")).await;
        let settled = format!("SELECT count(*) FROM dual WHERE @@session.time_zone = '{zone}'");
        assert_eq!(hand.number(&settled).await, 1);
        return hand;
    }
    hand.execute(&format!("SET timezone = '{zone}'; SET datestyle = 'SQL, DMY'")).await;
    let settled = format!("SELECT count(*) FROM pg_settings WHERE name = 'TimeZone' AND setting = '{zone}'");
    assert_eq!(hand.number(&settled).await, 1);
    // And whoever comes from now on, unless they say otherwise.
    hand.execute(&format!(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = %L', current_database(), '{zone}'); END $$"
    ))
    .await;
    hand
}

/// A worker whose sessions are settled there, where it is not the database that says so.
async fn worker_in(site: &Site, zone: &str) -> Worker {
    let url = site.database.url();
    match site.backend() {
        Backend::Mysql => {
            let url = format!("{url}?timezone={}", zone.replace('+', "%2B"));
            site.worker_by(|builder| builder.url(url)).await
        }
        _ => site.worker().await,
    }
}

pub(super) async fn c12_sessions_in_other_zones_agree(site: &Site) {
    let (w, gate) = (site.worker().await, Gate::new());
    let mut running = Box::pin(minute(&w, "held", &gate));
    gate.stops(&mut running).await;
    write_by_hand(site).await;
    let here = sight(&w).await;
    let zones: &[&str] = match site.backend() {
        Backend::Mysql => &["+00:00", "+05:30", "-03:30", "+12:45", "-11:00"],
        _ => &ZONES,
    };
    for (n, zone) in zones.iter().enumerate() {
        let mut hand = settled_in(site, zone).await;
        let elsewhere = worker_in(site, zone).await;
        assert_eq!(sight(&elsewhere).await, here, "{zone}");
        // A claim by hand in this zone's words is as old as it is for everybody.
        for (age, kind) in [(14, ErrorKind::InProgress), (16, ErrorKind::NeedsReview)] {
            let id = format!("{n}-{age}");
            let born = match site.backend() {
                Backend::Mysql => format!("localtimestamp(6) - INTERVAL {age} MINUTE"),
                _ => format!("(localtimestamp - interval '{age} minutes')::text::timestamptz"),
            };
            let insert =
                format!("INSERT INTO idempotency_keys (\"key\", created_at) VALUES ('c12:{id}', {born})");
            hand.execute(&insert).await;
            for worker in [&w, &elsewhere] {
                refused(kind, minute(worker, &id, &gate)).await;
            }
        }
        executed(twenty_years(&elsewhere, zone)).await;
        assert_eq!(replayed(twenty_years(&w, zone)).await, 1);
    }
    gate.open();
    assert_eq!(running.await.expect("its lease is a minute everywhere"), 1);
}

/// The hour that comes twice, and the one that never was.
pub(super) async fn c12_a_change_of_the_clocks_moves_no_moment(site: &Site) {
    let w = site.worker().await;
    let mut hand = settled_in(site, "Europe/Berlin").await;
    for (n, (text, micros)) in [
        ("2024-10-27 02:30:00+02", 1_729_989_000_000_000),
        ("2024-10-27 02:30:00+01", 1_729_992_600_000_000),
        ("2024-10-27 03:30:00", 1_729_996_200_000_000),
        ("2024-03-31 01:30:00", 1_711_845_000_000_000),
        ("2024-03-31 03:30:00", 1_711_848_600_000_000),
        ("2024-03-31 02:30:00", 1_711_848_600_000_000),
    ]
    .into_iter()
    .enumerate()
    {
        hand.execute(&format!("INSERT INTO idempotency_keys (key, created_at) VALUES ('c12:{n}', '{text}')"))
            .await;
        assert_eq!(w.row(&format!("c12:{n}")).await.created_at, micros, "{text}");
        refused(ErrorKind::NeedsReview, minute(&w, &n.to_string(), &Gate::new())).await;
    }
}

/// Whatever part of a second it is, and however coarse the columns that say when.
pub(super) async fn c12_a_lease_of_a_second_is_a_second(site: &Site) {
    let w = site.worker().await;
    let coarse: &[&str] = match site.backend() {
        Backend::Memory | Backend::Sqlite => &["SELECT 1"],
        Backend::Postgres => &[
            "ALTER TABLE idempotency_keys ALTER COLUMN created_at TYPE timestamptz(0),
             ALTER COLUMN completed_at TYPE timestamptz(0)",
            "ALTER TABLE idempotency_keys ALTER COLUMN created_at TYPE timestamptz(3),
             ALTER COLUMN completed_at TYPE timestamptz(3)",
            "ALTER TABLE idempotency_keys ALTER COLUMN created_at TYPE timestamptz,
             ALTER COLUMN completed_at TYPE timestamptz",
        ],
        Backend::Mysql => &[
            "ALTER TABLE idempotency_keys MODIFY created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
             MODIFY completed_at timestamp NULL DEFAULT NULL",
            "ALTER TABLE idempotency_keys MODIFY created_at timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
             MODIFY completed_at timestamp(3) NULL DEFAULT NULL",
            "ALTER TABLE idempotency_keys MODIFY created_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
             MODIFY completed_at timestamp(6) NULL DEFAULT NULL",
        ],
    };
    for (n, change) in coarse.iter().enumerate() {
        site.execute(change).await;
        for step in 0..10 {
            let (id, gate) = (format!("{n}-{step}"), Gate::new());
            let mut running = Box::pin(second(&w, &id, &gate));
            gate.stops(&mut running).await;
            let row = w.row(&format!("c12-second:{id}")).await;
            let lease = row.lease_until.expect("a lease") - row.fence;
            assert!((995_000..=1_005_000).contains(&lease), "{lease} {row:?}");
            drop(running);
            sleep(Duration::from_millis(37)).await;
        }
        // A claim that is stale is taken over and completed by its version, rounded as it is.
        let (id, gate) = (format!("{n}-taken"), Gate::new());
        let mut running = Box::pin(second(&w, &id, &gate));
        gate.stops(&mut running).await;
        site.end_lease(&w, &format!("c12-second:{id}")).await;
        let heir = Gate::new();
        heir.open();
        assert_eq!(took_over(second(&site.worker().await, &id, &heir)).await, 2);
        gate.open();
        assert_eq!(running.await.expect_err("taken over").kind(), ErrorKind::ClaimLost);
    }
}

pub(super) async fn c12_twenty_years_pass_2038(site: &Site) {
    let w = site.worker().await;
    assert_eq!(executed(twenty_years(&w, "a")).await, 1);
    assert_eq!(executed(mail_of_twenty_years(&w, "m")).await, 1);
    for key in ["c12-long:a", "c12-mail:m"] {
        let row = w.row(key).await;
        let years = 7_305 * 24 * 3_600_000_000_i64;
        let kept = row.expires_at.expect("an end") - row.now;
        assert!(kept > years - 60_000_000 && kept <= years, "{kept}");
        assert!(row.expires_at > Some(i64::from(i32::MAX) * 1_000_000), "past 2038");
    }
    // A row of those days: completed, kept, and read as what it is.
    let days: &[&str] = match site.backend() {
        Backend::Memory => &[],
        Backend::Sqlite => &["2038-01-19 03:14:08", "2106-02-07 06:28:16", "9999-12-31 23:59:59"],
        Backend::Postgres => &["2038-01-19 03:14:08+00", "2106-02-07 06:28:16+00", "9999-12-31 23:59:59+00"],
        // Some releases count no further in a `timestamp`; what decides is kept in integers there as well.
        Backend::Mysql => &["2038-01-19 03:14:06"],
    };
    let ends = ["4102444800000000", "9223372036854775807", "253402300799000000"];
    for (n, (born, end)) in days.iter().zip(ends).enumerate() {
        site.execute(&format!(
            "INSERT INTO idempotency_keys (\"key\", status, created_at, completed_at, expires_at, result)
             VALUES ('c12-long:{n}', 'completed', '{born}', '{born}', {end}, '7')"
        ))
        .await;
        assert_eq!(replayed(twenty_years(&w, &n.to_string())).await, 7);
        let row = w.row(&format!("c12-long:{n}")).await;
        assert_eq!((Some(row.created_at), row.expires_at), (row.completed_at, end.parse().ok()));
        assert!(row.created_at >= (i64::from(i32::MAX) - 1) * 1_000_000, "{born}");
    }
    assert_eq!(w.idem.purge().await.expect("a purge"), 0);
    assert_eq!(site.ledger.total(), 2);
}

/// Moments that are none: nobody knows how old the claim is, and nobody runs beside it.
pub(super) async fn c12_a_moment_that_cannot_be_read_frees_nothing(site: &Site) {
    let w = site.worker().await;
    let moments: &[&str] = match site.backend() {
        Backend::Memory => &[],
        Backend::Sqlite => {
            &["yesterday", "1717245296", "2024-13-45 99:99:99", "", "12:00", "0000-00-00 00:00:00"]
        }
        Backend::Mysql => &["1970-01-01 00:00:01", "2001-09-09 01:46:40.123456"],
        Backend::Postgres => &["-infinity", "infinity", "4713-01-01 00:00:00 BC", "epoch"],
    };
    for (n, moment) in moments.iter().enumerate() {
        for status in ["processing", "completed"] {
            site.execute(&format!(
                "INSERT INTO idempotency_keys (\"key\", status, created_at, completed_at)
                 VALUES ('c12-long:{status}-{n}', '{status}', '{moment}', '{moment}')"
            ))
            .await;
        }
        refused(ErrorKind::NeedsReview, twenty_years(&w, &format!("processing-{n}"))).await;
        refused(ErrorKind::AlreadyCompleted, twenty_years(&w, &format!("completed-{n}"))).await;
    }
    assert_eq!(site.ledger.total(), 0);
}
