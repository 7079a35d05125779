//! What belongs to a whole process, each in one of its own: the installed handle, the environment.

use idem_runtime::{Error, ErrorKind, Idem, idempotent};
use idem_tests::{Child, child, child::Parent};

use crate::cases::call::{executed, refused};

#[idempotent(key = "bad-global:<id>")]
async fn global(id: u32) -> Result<u32, Error> {
    Ok(id)
}

#[idempotent(key = "bad-global-sync:<id>")]
fn global_sync(id: u32) -> Result<u32, Error> {
    Ok(id)
}

/// Runs a scenario that changes what belongs to a whole process in one of its own.
fn alone(test: &str) {
    let mut process = Child::spawn(&mut child::test(&format!("bad_input::process::{test}")));
    process.expect("done");
    assert!(process.wait().success(), "{}", process.transcript());
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn without_an_installed_one() {
    let Some(parent) = Parent::attach() else { return };
    for error in
        [refused(ErrorKind::NotInstalled, global(1)).await, global_sync(1).expect_err("none installed")]
    {
        let text = error.to_string();
        assert!(
            text.contains("Idem::connect") && text.contains("install()") && text.contains("idem ="),
            "{text}"
        );
        assert!(!error.is_retryable());
    }
    Idem::connect("memory:").await.expect("memory").install().expect("the first");
    assert_eq!(executed(global(1)).await, 1);
    assert_eq!(global_sync(1).expect("a value"), 1);
    parent.say("done");
}

#[test]
fn a_job_without_an_installed_idem_says_what_to_call() {
    alone("without_an_installed_one");
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn with_two_installed() {
    let Some(parent) = Parent::attach() else { return };
    let first = Idem::connect("sqlite::memory:").await.expect("a database");
    let second = Idem::connect("memory:").await.expect("memory");
    first.install().expect("the first");
    for again in [&second, &first] {
        let error = again.install().expect_err("one is installed");
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("already") && error.to_string().contains("idem ="), "{error}");
    }
    executed(global(1)).await;
    assert!(first.lookup("bad-global:1").await.expect("a look").is_some(), "the first stays");
    assert!(second.lookup("bad-global:1").await.expect("a look").is_none());
    parent.say("done");
}

#[test]
fn a_second_install_is_refused_and_the_first_stays() {
    alone("with_two_installed");
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn without_a_variable() {
    let Some(parent) = Parent::attach() else { return };
    let error = Idem::from_env().await.expect_err("no variable");
    assert_eq!(error.kind(), ErrorKind::Config);
    for word in ["IDEM_DATABASE_URL", "from_env_or"] {
        assert!(error.to_string().contains(word), "{error}");
    }
    Idem::from_env_or("memory:").await.expect("the default");
    parent.say("done");
}

#[test]
fn a_forgotten_variable_is_told() {
    let mut command = child::test("bad_input::process::without_a_variable");
    let mut process = Child::spawn(command.env_remove("IDEM_DATABASE_URL"));
    process.expect("done");
    assert!(process.wait().success(), "{}", process.transcript());
}
