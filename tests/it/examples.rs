//! The examples, as their users run them: programs in a folder of their own, counted by their closing line.

mod folder;

use std::os::unix::process::ExitStatusExt as _;

use folder::{Folder, Run};
use idem_tests::Backend;
use sqlx::{Connection as _, SqliteConnection};

/// The cases that play on every database, under the database's name.
macro_rules! on_databases {
    ($($case:ident)+) => {
        mod sqlite {
            $(
                #[test]
                fn $case() {
                    super::plays(super::Backend::Sqlite, super::$case);
                }
            )+
        }
        mod postgres {
            $(
                #[test]
                fn $case() {
                    super::plays(super::Backend::Postgres, super::$case);
                }
            )+
        }
        mod mysql {
            $(
                #[test]
                fn $case() {
                    super::plays(super::Backend::Mysql, super::$case);
                }
            )+
        }
    };
}

mod order;

on_databases! {
    a_second_run_executes_nothing
    a_key_whose_worker_died_is_charged_once_and_needs_review
    two_processes_share_the_work
    a_mail_whose_worker_died_goes_out_again_and_none_is_lost
    the_books_are_right_whoever_dies_before_the_commit
    two_banks_share_the_books
}

fn plays(backend: Backend, case: fn(Backend)) {
    if backend.available() {
        case(backend);
    } else {
        eprintln!("{backend} is missing here: `cargo xtask test` starts it");
    }
}

const SIGABRT: i32 = 6;

fn a_second_run_executes_nothing(backend: Backend) {
    let folder = Folder::on(backend);
    let first = folder.run("billing", &["--json"]);
    assert_eq!(first.code(), Some(0), "{first}");
    first.adds_up();
    assert!(first.count("deliveries") >= 300, "{first}");
    assert!(first.count("malformed") > 0, "{first}");
    assert_eq!(first.count("executed"), 80, "{first}");
    assert_eq!([first.count("charges"), first.count("distinct_keys")], [80, 80], "{first}");
    assert_eq!([first.count("refused"), first.count("needs_review")], [0, 0], "{first}");

    let second = folder.run("billing", &["--json"]);
    assert_eq!(second.code(), Some(0), "{second}");
    second.adds_up();
    assert_eq!([second.count("executed"), second.count("charges")], [0, 80], "{second}");
    assert_eq!(second.count("replayed"), first.count("executed") + first.count("replayed"), "{second}");
}

fn a_key_whose_worker_died_is_charged_once_and_needs_review(backend: Backend) {
    let folder = Folder::on(backend);
    let crash = folder.run("billing", &["--json", "--die-in-charge", "7"]);
    assert_eq!(crash.status.signal(), Some(SIGABRT), "{crash}");

    let next = folder.run("billing", &["--json"]);
    assert_eq!(next.code(), Some(3), "{next}");
    next.adds_up();
    assert_eq!([next.count("charges"), next.count("distinct_keys")], [80, 80], "{next}");
    assert_eq!(next.count("needs_review"), 1, "{next}");
    assert!(next.count("refused") > 0, "{next}");
    assert!(next.count("retried") > 0, "the claim was alive at first, so it was delivered again\n{next}");
    assert!(next.count("executed") < 80 - 6, "what the crash let end is not run again\n{next}");
    assert!(next.errors.contains("idem.resolve(\"billing:"), "{next}");

    let later = folder.run("billing", &["--json"]);
    assert_eq!(later.code(), Some(3), "{later}");
    assert_eq!([later.count("executed"), later.count("needs_review")], [0, 1], "{later}");
    assert_eq!(later.count("charges"), 80, "{later}");
}

fn two_processes_share_the_work(backend: Backend) {
    let folder = Folder::on(backend);
    let started = [(); 2].map(|()| folder.start("billing", &["--json"]));
    let runs = started.map(folder::Started::end);
    for run in &runs {
        assert_eq!(run.code(), Some(0), "{run}");
        run.adds_up();
        assert_eq!([run.count("charges"), run.count("distinct_keys")], [80, 80], "{run}");
    }
    assert_eq!(runs.iter().map(|run| run.count("executed")).sum::<u64>(), 80);
}

fn a_mail_whose_worker_died_goes_out_again_and_none_is_lost(backend: Backend) {
    let folder = Folder::on(backend);
    let crash = folder.run("password_reset", &["--json", "--workers", "1", "--die-after-send", "7"]);
    assert_eq!(crash.status.signal(), Some(SIGABRT), "{crash}");

    let next = folder.run("password_reset", &["--json", "--workers", "1"]);
    assert_eq!(next.code(), Some(0), "{next}");
    next.adds_up();
    assert_eq!(next.count("needs_review"), 0, "{next}");
    assert_eq!(next.count("mails"), next.count("distinct_keys") + 1, "the one that was not recorded\n{next}");

    let later = folder.run("password_reset", &["--json"]);
    assert_eq!(later.count("executed"), 0, "{later}");
    assert_eq!(later.count("mails"), next.count("mails"), "{later}");
}

fn the_books_are_right_whoever_dies_before_the_commit(backend: Backend) {
    let folder = Folder::on(backend);
    let first = folder.run("transfer", &["--json"]);
    assert_eq!(first.code(), Some(0), "{first}");
    first.adds_up();
    assert_eq!([first.count("deliveries"), first.count("executed")], [1000, 250], "{first}");
    assert_eq!([first.count("postings"), first.count("distinct_keys")], [500, 250], "{first}");
    assert_eq!([first.count("sum_before"), first.count("sum_after")], [2_000_000; 2], "{first}");
    assert_eq!([first.count("refused"), first.count("needs_review")], [0, 0], "{first}");
    assert!(first.count("retried") >= 100, "each trouble costs an attempt\n{first}");
    let deaths = first.errors.matches("a worker died").count();
    assert!((1..=50).contains(&deaths), "half of the troubles kill a worker\n{first}");
    assert!(!first.errors.contains("kind=Store"), "the table of keys was at hand all the time\n{first}");

    let second = folder.run("transfer", &["--json", "--seed", "8", "--workers", "3"]);
    assert_eq!(second.code(), Some(0), "{second}");
    second.adds_up();
    assert_eq!([second.count("executed"), second.count("replayed")], [0, 1000], "{second}");
    assert_eq!([second.count("postings"), second.count("sum_after")], [500, 2_000_000], "{second}");
}

fn two_banks_share_the_books(backend: Backend) {
    let folder = Folder::on(backend);
    let options = [["--json", "--seed", "1", "--workers", "4"], ["--json", "--seed", "2", "--workers", "4"]];
    let started = options.map(|options| folder.start("transfer", &options));
    let runs = started.map(folder::Started::end);
    for run in &runs {
        assert_eq!(run.code(), Some(0), "{run}");
        run.adds_up();
        assert_eq!([run.count("postings"), run.count("sum_after")], [500, 2_000_000], "{run}");
    }
    assert_eq!(runs.iter().map(|run| run.count("executed")).sum::<u64>(), 250);
}

#[test]
fn a_bank_keeps_its_books_where_its_workers_find_them() {
    let folder = Folder::on(Backend::Sqlite);
    for url in ["memory:", "sqlite::memory:"] {
        let run = folder.run_with(url, "transfer", &[]);
        assert_eq!(run.code(), Some(1), "{run}");
        assert!(run.errors.contains("is this process's alone"), "{run}");
    }
}

#[tokio::test]
async fn wrong_books_are_told_of() {
    let folder = Folder::on(Backend::Sqlite);
    let transfer = |id: &str, cents| {
        format!(r#"{{"job_id":"a","transfer_id":"{id}","from":1001,"to":1002,"cents":{cents}}}"#)
    };
    let twice = [("67e55044-10b1-426f-9247-bb680e5fe0c8", 5), ("67e55044-10b1-426f-9247-bb680e5fe0c9", 7)];
    folder.write("two.jsonl", &twice.map(|(id, cents)| transfer(id, cents)).join("\n"));
    let arguments = ["--json", "--deliveries", "two.jsonl", "--troubles", "0"];
    let right = folder.run("transfer", &arguments);
    assert_eq!(right.code(), Some(0), "{right}");
    assert_eq!([right.count("postings"), right.count("retried")], [4, 0], "{right}");

    let books = SqliteConnection::connect(&format!("sqlite://{}", folder.path("idem.db").display()));
    let mut books = books.await.expect("the books");
    let again = "INSERT INTO postings SELECT * FROM postings LIMIT 1";
    sqlx::raw_sql(again).execute(&mut books).await.expect("a posting too many");
    let wrong = folder.run("transfer", &arguments);
    assert_eq!(wrong.code(), Some(1), "a posting too many\n{wrong}");
    assert_eq!([wrong.count("postings"), wrong.count("executed")], [5, 0], "{wrong}");
}

#[test]
fn a_file_of_ones_own_is_delivered_line_by_line() {
    let folder = Folder::on(Backend::Sqlite);
    let good = r#"{"job_id":"a","user_id":1,"month":"2024-06","cents":5}"#;
    let lines = [
        good,
        "",
        "nonsense",
        r#"{"job_id":"b","user_id":1,"month":"2024-06","cents":5}"#,
        r#"{"job_id":"c","user_id":1,"month":"2024-6","cents":5}"#,
        r#"{"job_id":"d","user_id":1,"month":"2024-06","#,
        r#"{"job_id":"e","user_id":1,"month":"2024-06","cents":6}"#,
    ];
    folder.write("own.jsonl", &lines.join("\n"));
    let run = folder.run("billing", &["--deliveries", "own.jsonl", "--json", "--workers", "1"]);
    assert_eq!(run.code(), Some(0), "{run}");
    run.adds_up();
    assert_eq!([run.count("deliveries"), run.count("malformed")], [7, 4], "{run}");
    assert_eq!([run.count("charges"), run.count("distinct_keys")], [1, 1], "{run}");
    assert_eq!(run.count("refused"), 1, "one that asks for another amount under the same key\n{run}");
    for line in [2, 3, 5, 6] {
        assert!(run.errors.contains(&format!("line={line} ")), "{run}");
    }
}

#[test]
fn a_file_without_deliveries_is_nothing_to_do() {
    let folder = Folder::on(Backend::Sqlite);
    folder.write("empty.jsonl", "");
    let run = folder.run("billing", &["--deliveries", "empty.jsonl", "--json"]);
    assert_eq!(run.code(), Some(0), "{run}");
    assert_eq!([run.count("deliveries"), run.count("distinct_keys")], [0, 0], "{run}");
}

#[test]
fn an_exit_code_tells_usage_from_errors() {
    let folder = Folder::on(Backend::Sqlite);
    for wrong in
        [&["--workers", "0"][..], &["--workers", "many"], &["--die-in-charge", "0"], &["--frobnicate"]]
    {
        let run = folder.run("billing", wrong);
        assert_eq!(run.code(), Some(2), "{run}");
    }
    let absent = folder.run("billing", &["--deliveries", "absent.jsonl"]);
    assert_eq!(absent.code(), Some(1), "{absent}");
    assert!(absent.errors.contains("cannot read absent.jsonl"), "{absent}");

    let nowhere = folder.run_with("nonsense", "billing", &[]);
    assert_eq!(nowhere.code(), Some(1), "{nowhere}");
    assert!(nowhere.errors.contains("is not a database URL"), "{nowhere}");
}

#[test]
fn a_run_closes_with_a_table() {
    let run = Folder::on(Backend::Sqlite).run("billing", &["--workers", "1"]);
    assert_eq!(run.code(), Some(0), "{run}");
    let table =
        run.output.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect::<Vec<_>>();
    assert!(table.contains(&vec!["│", "charges", "80", "│"]), "{run}");
    assert!(run.errors.contains("idem.db"), "the place of the keys is said\n{run}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_shows_progress() {
    let Some(run) = Folder::on(Backend::Sqlite).run_on_terminal("billing") else {
        eprintln!("`script` of util-linux is missing here: no terminal to show progress on");
        return;
    };
    assert_eq!(run.code(), Some(0), "{run}");
    assert!(run.output.contains("/342 deliveries"), "{run}");
}

#[test]
fn the_readme_shows_the_quickstart() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let read = |file: &str| std::fs::read_to_string(format!("{folder}/../{file}")).expect(file);
    let (readme, quickstart) = (read("README.md"), read("examples/quickstart.rs"));
    let (_, rest) = readme.split_once("```rust\n").expect("a block of Rust");
    let (shown, _) = rest.split_once("```").expect("its end");
    let (_, code) = quickstart.split_once("\n\n").expect("code behind the module's docs");
    assert_eq!(shown, code);
    assert!(quickstart.lines().count() <= 40);

    let run = Folder::on(Backend::Sqlite).run("quickstart", &[]);
    assert_eq!(run.code(), Some(0), "{run}");
    assert_eq!(run.output.lines().count(), 2, "{run}");
}

impl Run {
    /// Every line of the file is counted once.
    fn adds_up(&self) {
        let parts = ["executed", "replayed", "refused", "malformed"].map(|name| self.count(name));
        assert_eq!(self.count("deliveries"), parts.iter().sum::<u64>(), "{self}");
    }
}

/// How many keys of a folder are completed by now.
async fn completed(folder: &Folder) -> i64 {
    let url = format!("sqlite://{}", folder.path("idem.db").display());
    let Ok(mut connection) = SqliteConnection::connect(&url).await else { return 0 };
    let count = "SELECT count(*) FROM idempotency_keys WHERE status = 'completed'";
    sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap_or(0)
}

#[tokio::test]
async fn a_process_that_is_told_to_leave_leaves_nothing_half_done() {
    const JOBS: u64 = 1_500;
    let folder = Folder::on(Backend::Sqlite);
    let line = |n| format!("{{\"job_id\":\"{n}\",\"user_id\":{n},\"month\":\"2024-03\",\"cents\":1900}}\n");
    folder.write("many.jsonl", &(0..JOBS).map(line).collect::<String>());
    let arguments = ["--json", "--deliveries", "many.jsonl"];

    let first = folder.start("billing", &arguments);
    while completed(&folder).await < 20 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    first.terminate();
    let first = first.end();
    assert_eq!(first.code(), Some(1), "{first}");
    assert!(first.errors.contains("notice to leave"), "{first}");
    first.adds_up();
    let (executed, charges) = (first.count("executed"), first.count("charges"));
    assert!((20..JOBS).contains(&executed) && charges == executed, "{first}");
    assert_eq!(u64::try_from(completed(&folder).await), Ok(executed), "what ran is recorded");

    let second = folder.run("billing", &arguments);
    assert_eq!(second.code(), Some(0), "{second}");
    assert_eq!([second.count("executed"), second.count("replayed")], [JOBS - executed, executed], "{second}");
    assert_eq!([second.count("charges"), second.count("needs_review")], [JOBS, 0], "{second}");
}
