//! Orders whose worker dies in one of their phases, or behind one: what the next run does, and what there is of each
//! effect.

use std::{fs, os::unix::process::ExitStatusExt as _};

use sqlx::{Connection as _, SqliteConnection};

use super::{
    Backend, SIGABRT, completed,
    folder::{Folder, Run},
    plays,
};

on_databases! {
    a_reservation_that_was_not_committed_is_made_by_the_next_run
    a_reservation_that_was_committed_is_not_made_again
    a_charge_whose_worker_died_is_asked_about_and_not_repeated
    a_charge_that_was_recorded_is_not_even_asked_about
    a_receipt_whose_worker_died_is_mailed_again
    an_order_whose_phases_are_over_is_completed_without_effect
    a_reply_that_gets_lost_costs_no_second_charge
    orders_keep_their_promises_whoever_dies_wherever
    two_shops_share_the_orders
}

/// The orders of the built-in file, and what is delivered of them.
const ORDERS: u64 = 40;
const DELIVERIES: u64 = 150;

impl Run {
    /// Each order has one reservation and one charge. Gives the mails.
    fn orders_are_kept(&self) -> u64 {
        assert_eq!(self.code(), Some(0), "{self}");
        self.adds_up();
        assert_eq!([self.count("distinct_keys"), self.count("needs_review")], [ORDERS, 0], "{self}");
        assert_eq!([self.count("reservations"), self.count("charges")], [ORDERS; 2], "{self}");
        self.count("mails")
    }
}

/// A run dies, and the next one goes on. So often the provider is asked then, and so many mails go out in all.
fn dies(backend: Backend, point: &str, asked: u64, mails: u64) {
    let folder = Folder::on(backend);
    let crash = folder.run("order", &["--json", "--workers", "1", "--die-in", point]);
    assert_eq!(crash.status.signal(), Some(SIGABRT), "{crash}");
    assert!(crash.errors.contains(&format!("dying: {point} of order 1001")), "{crash}");

    let next = folder.run("order", &["--json", "--workers", "1"]);
    assert_eq!(next.orders_are_kept(), mails, "{next}");
    assert_eq!(
        [next.count("executed"), next.count("refused")],
        [ORDERS, 0],
        "the dead one's order, too\n{next}"
    );
    assert!(next.count("retried") > 0, "its claim was alive at first\n{next}");
    assert_eq!(next.count("asked"), asked, "{next}");
    is_over(&folder, mails);
}

/// One run more has no effect.
fn is_over(folder: &Folder, mails: u64) {
    let later = folder.run("order", &["--json"]);
    assert_eq!(later.orders_are_kept(), mails, "{later}");
    assert_eq!([later.count("executed"), later.count("replayed")], [0, DELIVERIES], "{later}");
    assert_eq!(later.count("asked"), 0, "{later}");
}

fn a_reservation_that_was_not_committed_is_made_by_the_next_run(backend: Backend) {
    dies(backend, "reserve", 0, ORDERS);
}

fn a_reservation_that_was_committed_is_not_made_again(backend: Backend) {
    dies(backend, "after-reserve", 0, ORDERS);
}

fn a_charge_whose_worker_died_is_asked_about_and_not_repeated(backend: Backend) {
    dies(backend, "charge", 1, ORDERS);
}

fn a_charge_that_was_recorded_is_not_even_asked_about(backend: Backend) {
    dies(backend, "after-charge", 0, ORDERS);
}

fn a_receipt_whose_worker_died_is_mailed_again(backend: Backend) {
    dies(backend, "receipt", 0, ORDERS + 1);
}

fn an_order_whose_phases_are_over_is_completed_without_effect(backend: Backend) {
    dies(backend, "after-receipt", 0, ORDERS);
}

fn a_reply_that_gets_lost_costs_no_second_charge(backend: Backend) {
    let folder = Folder::on(backend);
    let run = folder.run("order", &["--json", "--lose-replies", "3"]);
    assert_eq!(run.orders_are_kept(), ORDERS, "{run}");
    assert_eq!([run.count("asked"), run.count("executed")], [3, ORDERS], "{run}");
    assert!(run.count("retried") >= 3, "each of them fails its job, which is delivered again\n{run}");
    is_over(&folder, ORDERS);
}

fn orders_keep_their_promises_whoever_dies_wherever(backend: Backend) {
    const WORKERS: u64 = 8;
    let folder = Folder::on(backend);
    let (workers, lose) = (WORKERS.to_string(), "2");
    let points = ["reserve", "after-reserve", "charge", "after-charge", "receipt", "after-receipt"];
    for point in points {
        let options = ["--json", "--workers", &workers, "--lose-replies", lose, "--die-in", point];
        let crash = folder.run("order", &options);
        assert_eq!(crash.status.signal(), Some(SIGABRT), "{point}\n{crash}");
    }
    let end = folder.run("order", &["--json", "--workers", &workers]);
    let mails = end.orders_are_kept();
    // Those that the last two took with them unrecorded went out again.
    assert!((ORDERS + 1..=ORDERS + 2 * WORKERS).contains(&mails), "{end}");
    is_over(&folder, mails);
}

fn two_shops_share_the_orders(backend: Backend) {
    let folder = Folder::on(backend);
    let started = [(); 2].map(|()| folder.start("order", &["--json"]));
    let runs = started.map(super::folder::Started::end);
    for run in &runs {
        assert!(run.orders_are_kept() >= ORDERS, "{run}");
    }
    assert_eq!(runs.iter().map(|run| run.count("executed")).sum::<u64>(), ORDERS);
}

async fn execute(folder: &Folder, statement: &'static str) {
    let url = format!("sqlite://{}", folder.path("idem.db").display());
    let mut connection = SqliteConnection::connect(&url).await.expect("the database of a run");
    let changed = sqlx::raw_sql(statement).execute(&mut connection).await.expect(statement);
    assert_eq!(changed.rows_affected(), 1, "{statement}");
}

#[tokio::test]
async fn a_charge_under_review_holds_up_its_order_and_no_other() {
    let folder = Folder::on(Backend::Sqlite);
    let crash = folder.run("order", &["--json", "--workers", "1", "--die-in", "charge"]);
    assert_eq!(crash.status.signal(), Some(SIGABRT), "{crash}");
    let review = "UPDATE idempotency_keys SET status = 'needs_review' WHERE key = 'order:1001/charge'";
    execute(&folder, review).await;

    let next = folder.run("order", &["--json", "--workers", "1"]);
    assert_eq!(next.code(), Some(3), "{next}");
    next.adds_up();
    assert_eq!([next.count("executed"), next.count("needs_review")], [ORDERS - 1, 1], "{next}");
    assert_eq!([next.count("charges"), next.count("asked")], [ORDERS, 0], "{next}");
    assert_eq!([next.count("reservations"), next.count("mails")], [ORDERS, ORDERS - 1], "{next}");
    assert!(next.errors.contains("idem.resolve(\"order:1001/charge\""), "{next}");
}

#[tokio::test]
async fn an_effect_too_many_or_too_few_is_told_of() {
    let folder = Folder::on(Backend::Sqlite);
    assert_eq!(folder.run("order", &["--json"]).orders_are_kept(), ORDERS);
    let told = |effect: &str, count: u64| {
        let wrong = folder.run("order", &["--json"]);
        assert_eq!([wrong.count(effect), wrong.count("executed")], [count, 0], "{wrong}");
        assert_eq!(wrong.code(), Some(1), "{wrong}");
    };
    for (file, effect) in [("charges.jsonl", "charges"), ("outbox.jsonl", "mails")] {
        let right = fs::read_to_string(folder.path(file)).expect(file);
        let (first, rest) = right.split_once('\n').expect("lines");
        folder.write(file, rest);
        told(effect, ORDERS - 1);
        if effect == "charges" {
            folder.write(file, &format!("{right}{first}\n"));
            told(effect, ORDERS + 1);
        }
        folder.write(file, &right);
    }
    execute(&folder, "INSERT INTO reservations SELECT * FROM reservations LIMIT 1").await;
    told("reservations", ORDERS + 1);
    execute(&folder, "DELETE FROM reservations WHERE rowid = (SELECT max(rowid) FROM reservations)").await;
    execute(&folder, "UPDATE stock SET pieces = pieces + 1 WHERE article = 'mug'").await;
    told("reservations", ORDERS);
}

#[test]
fn an_order_that_cannot_be_reserved_is_not_charged() {
    let folder = Folder::on(Backend::Sqlite);
    let order = |id, pieces| {
        format!(
            r#"{{"job_id":"a","id":{id},"article":"mug","pieces":{pieces},"cents":5,"email":"a@example.com"}}"#
        )
    };
    folder.write("two.jsonl", &[order(1, 2), order(2, 1_001)].join("\n"));
    let run = folder.run("order", &["--json", "--deliveries", "two.jsonl"]);
    assert_eq!(run.code(), Some(1), "{run}");
    run.adds_up();
    assert_eq!([run.count("executed"), run.count("refused")], [1, 1], "{run}");
    assert_eq!(["reservations", "charges", "mails"].map(|effect| run.count(effect)), [1; 3], "{run}");
    assert!(run.errors.contains("there are no 1001 pieces of mug"), "{run}");
}

#[tokio::test]
async fn a_shop_that_is_told_to_leave_leaves_no_order_half_done() {
    const MANY: u64 = 400;
    let folder = Folder::on(Backend::Sqlite);
    let line = |n| {
        format!(
            "{{\"job_id\":\"{n}\",\"id\":{n},\"article\":\"mug\",\"pieces\":1,\"cents\":5,\"email\":\"a@example.com\"}}\n"
        )
    };
    folder.write("many.jsonl", &(0..MANY).map(line).collect::<String>());
    let arguments = ["--json", "--deliveries", "many.jsonl"];
    let effects = ["reservations", "charges", "mails"];

    let first = folder.start("order", &arguments);
    while completed(&folder).await < 40 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    first.terminate();
    let first = first.end();
    assert_eq!(first.code(), Some(1), "{first}");
    assert!(first.errors.contains("notice to leave"), "{first}");
    first.adds_up();
    let executed = first.count("executed");
    assert!((1..MANY).contains(&executed), "{first}");
    assert_eq!(effects.map(|effect| first.count(effect)), [executed; 3], "{first}");

    let second = folder.run("order", &arguments);
    assert_eq!(second.code(), Some(0), "{second}");
    assert_eq!([second.count("executed"), second.count("replayed")], [MANY - executed, executed], "{second}");
    assert_eq!([second.count("reservations"), second.count("charges")], [MANY; 2], "{second}");
    assert!(second.count("mails") >= MANY, "{second}");
}

#[test]
fn a_shop_is_told_where_to_die_and_where_its_stock_cannot_be() {
    let folder = Folder::on(Backend::Sqlite);
    for wrong in [["--die-in", "nowhere"], ["--lose-replies", "all"], ["--workers", "0"]] {
        let run = folder.run("order", &wrong);
        assert_eq!(run.code(), Some(2), "{run}");
    }
    for url in ["memory:", "sqlite::memory:"] {
        let run = folder.run_with(url, "order", &[]);
        assert_eq!(run.code(), Some(1), "{run}");
        assert!(run.errors.contains("is one connection's alone"), "{run}");
    }
    assert_eq!(folder.run("order", &["--json"]).orders_are_kept(), ORDERS);
    let survivor = folder.run("order", &["--json", "--die-in", "charge"]);
    assert_eq!(survivor.orders_are_kept(), ORDERS, "{survivor}");
    assert!(survivor.errors.contains("nothing died: no order came to charge"), "{survivor}");
}
