//! What the attribute and the derive refuse, and how they say it.

use std::{io::Write, process::Command};

/// The compiler whose own words stand in the `.stderr` files.
const RUSTC: &str = "rustc 1.95.";

#[test]
fn each_mistake_has_its_message() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("a compiler");
    let version = String::from_utf8_lossy(&version.stdout);
    if !version.starts_with(RUSTC) {
        // Not `eprintln!`, which the test runner would keep to itself.
        let said = writeln!(
            std::io::stderr(),
            "not covered: compile errors are compared on {RUSTC}x only, and this is {version}"
        );
        said.expect("a standard error");
        return;
    }
    let cases = trybuild::TestCases::new();
    for folder in ["key", "args", "shape", "types", "phase", "tx"] {
        cases.compile_fail(format!("ui/{folder}/*.rs"));
    }
}
