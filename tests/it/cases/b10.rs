//! Lints: none of ours, all of the user's. Clippy looks at crates of their own, which `tests/lints` holds.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

const CLEAN: &str = include_str!("../../lints/clean.rs");
const FAULTY: &str = include_str!("../../lints/faulty.rs");

/// The mark of the attribute in the file that is compared.
const ATTRIBUTE: &str = "#[idem_runtime::idempotent(";

/// What must be among what is found, in asynchronous and in synchronous jobs.
const FAULTS: [&str; 11] = [
    "unused_variables: unused variable: `unused`",
    "unused_mut:",
    "unreachable_code:",
    "clippy::needless_return:",
    "unused_must_use:",
    "unused_assignments:",
    "dead_code:",
    "missing_docs:",
    "clippy::missing_panics_doc:",
    "clippy::unwrap_used:",
    "clippy::ptr_arg:",
];

/// Lints that look at what becomes of a parameter, or at what a body gives in every case: under the attribute its
/// parameters are taken by a closure, a key takes its part whatever its type, and the result may be a refusal.
const BEYOND: [&str; 5] = [
    "clippy::boxed_local",
    "clippy::needless_pass_by_value",
    "clippy::ptr_arg",
    "clippy::redundant_clone",
    "clippy::unnecessary_wraps",
];

#[test]
fn b10_no_lint_finds_fault_with_a_job() {
    let Some(found) = clippy([("clean", CLEAN.to_owned())]) else { return };
    assert_eq!(found["clean"], BTreeSet::new());
}

#[test]
fn b10_lints_find_the_users_faults_where_they_found_them() {
    let plain = without_attributes(FAULTY);
    let Some(found) = clippy([("faulty", FAULTY.to_owned()), ("plain", plain)]) else { return };
    let (job, plain) = (&found["faulty"], &found["plain"]);
    for lint in FAULTS {
        assert!(job.iter().filter(|finding| finding.contains(lint)).count() > 1, "{lint} in {job:#?}");
    }
    let beyond = |finding: &&String| BEYOND.iter().any(|lint| finding.contains(lint));
    let silenced: Vec<_> = plain.difference(job).filter(|finding| !beyond(finding)).collect();
    let added: Vec<_> = job.difference(plain).collect();
    assert!(silenced.is_empty() && added.is_empty(), "silenced: {silenced:#?}\nadded: {added:#?}");
}

/// The same text with spaces in the place of the attributes.
fn without_attributes(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(ATTRIBUTE) {
        let (before, attribute) = rest.split_at(at);
        let end = attribute.find(")]").expect("an attribute that ends") + 2;
        plain.push_str(before);
        plain.extend(attribute[..end].chars().map(|c| if c == '\n' { c } else { ' ' }));
        rest = &attribute[end..];
    }
    plain + rest
}

/// What clippy says of these crates, in one run; `None`, and said aloud, where there is no clippy.
fn clippy<const N: usize>(crates: [(&'static str, String); N]) -> Option<BTreeMap<String, BTreeSet<String>>> {
    let mut command = cargo();
    if !command.args(["clippy", "--version"]).output().is_ok_and(|said| said.status.success()) {
        // Not `eprintln!`, which the test runner would keep to itself.
        let said =
            writeln!(std::io::stderr(), "not covered: there is no clippy here, which shows that lints hold");
        said.expect("a standard error");
        return None;
    }
    let folder = tempfile::TempDir::with_prefix_in("lints-", env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let names: Vec<_> = crates.iter().map(|(name, _)| name.to_string()).collect();
    write(
        &folder.path().join("Cargo.toml"),
        &format!("[workspace]\nresolver = \"3\"\nmembers = {names:?}\n"),
    );
    // The versions that the workspace has, so that nothing is asked of a registry.
    fs::copy(workspace().join("Cargo.lock"), folder.path().join("Cargo.lock")).expect("the versions");
    for (name, text) in crates {
        let runtime = workspace().join("idem-runtime");
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
             idem-runtime = {{ path = \"{}\", default-features = false }}\n",
            runtime.display()
        );
        write(&folder.path().join(name).join("Cargo.toml"), &manifest);
        write(&folder.path().join(name).join("src/lib.rs"), &text);
    }
    let mut command = cargo();
    command.args(["clippy", "--offline", "--workspace", "--keep-going", "--message-format=json"]);
    // One for all runs, so that what they depend on is looked at once.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lints");
    let said =
        command.current_dir(&folder).env("CARGO_TARGET_DIR", target).output().expect("a run of clippy");
    let (stdout, stderr) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    let mut found: BTreeMap<_, BTreeSet<_>> = names.into_iter().map(|name| (name, BTreeSet::new())).collect();
    let mut looked_at = 0;
    for line in stdout.lines() {
        let said: Value = serde_json::from_str(line).expect("a message");
        let of_one = said["target"]["name"].as_str().and_then(|name| found.get_mut(name));
        let Some(found) = of_one else { continue };
        looked_at +=
            usize::from(said["reason"] == "compiler-artifact" || said["reason"] == "compiler-message");
        if let Some(finding) = finding(&said["message"]) {
            found.insert(finding);
        }
    }
    assert!(looked_at >= N, "{stderr}");
    Some(found)
}

/// What a lint found and where, in a line; `None` for a summary, which has no place.
fn finding(message: &Value) -> Option<String> {
    let number = |value: &Value| value.as_u64().expect("a number");
    let places = message["spans"].as_array()?.iter().filter(|span| span["is_primary"] == true).map(|span| {
        let [from_line, from, to_line, to] =
            ["line_start", "column_start", "line_end", "column_end"].map(|name| number(&span[name]));
        format!("{from_line:03}:{from}-{to_line}:{to}")
    });
    let places: Vec<_> = places.collect();
    let lint = message["code"]["code"].as_str().unwrap_or("no lint");
    let (level, text) = (message["level"].as_str()?, message["message"].as_str()?);
    (!places.is_empty()).then(|| format!("{} {level} {lint}: {text}", places.join(" ")))
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace")
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("its folder");
    fs::write(file, text).expect("a file");
}
