//! What the attribute and the derive refuse, and how they say it.

use std::{collections::BTreeMap, fs, io::Write, path::Path, process::Command};

/// The compiler whose own words stand in the `.stderr` files.
const RUSTC: &str = "rustc 1.95.";

/// What the mistakes are about.
const FOLDERS: [&str; 6] = ["key", "args", "shape", "types", "phase", "tx"];

#[test]
fn b9_each_mistake_has_its_message() {
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
    for folder in FOLDERS {
        cases.compile_fail(format!("ui/{folder}/*.rs"));
    }
}

/// A mistake, and what is said of it.
struct Case {
    name: String,
    source: String,
    stderr: String,
}

fn cases() -> impl Iterator<Item = Case> {
    let of = |folder: &&str| {
        fs::read_dir(format!("ui/{folder}")).unwrap_or_else(|error| panic!("{folder}: {error}"))
    };
    let files = FOLDERS.iter().flat_map(of).map(|entry| entry.expect("an entry").path());
    let mut sources: Vec<_> = files.filter(|file| file.extension().is_some_and(|rs| rs == "rs")).collect();
    sources.sort();
    sources.into_iter().map(|file| {
        let read = |file: &Path| {
            fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        };
        let name = file.strip_prefix("ui").expect("a file below").with_extension("");
        let name =
            name.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
        Case { name, source: read(&file), stderr: read(&file.with_extension("stderr")) }
    })
}

impl Case {
    /// Each error, with its notes.
    fn errors(&self) -> Vec<&str> {
        let begins = |line: &str| line.starts_with("error: ") || line.starts_with("error[");
        let mut starts = vec![];
        let mut at = 0;
        for line in self.stderr.split_inclusive('\n') {
            if begins(line) {
                starts.push(at);
            }
            at += line.len();
        }
        starts.push(at);
        starts.windows(2).map(|ends| &self.stderr[ends[0]..ends[1]]).collect()
    }

    /// How many mistakes it makes: one, if its first line does not say `// offences: 2`.
    fn offences(&self) -> usize {
        let first = self.source.lines().next().expect("a first line");
        let Some((_, said)) = first.split_once("// offences: ") else { return 1 };
        said.split(|c: char| !c.is_ascii_digit())
            .next()
            .and_then(|number| number.parse().ok())
            .expect("a number")
    }

    /// The name of what the attribute or the derive stands on, and what follows it.
    fn item(&self) -> Option<(&str, &str)> {
        const KINDS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "mod", "const", "impl"];
        let attribute =
            self.source.find("#[idempotent").or_else(|| self.source.find("#[derive(KeyPart)]"))?;
        let start = attribute + self.source[attribute..].find("]\n")?;
        let words = words(&self.source[start..]);
        let kind = words.iter().position(|(word, at)| {
            KINDS.contains(word) && !self.source[start + at..].starts_with("const fn")
        })?;
        let (name, at) = words[kind + 1];
        Some((name, &self.source[start + at + name.len()..]))
    }
}

/// Each word of a source, and where it stands.
fn words(source: &str) -> Vec<(&str, usize)> {
    let separator = |c: char| c != '_' && !c.is_alphanumeric();
    let words = source.split(separator).filter(|word| !word.is_empty());
    words.map(|word| (word, word.as_ptr().addr() - source.as_ptr().addr())).collect()
}

/// The source that the error is about: what the first carets underline.
fn underlined(error: &str) -> &str {
    let lines: Vec<_> = error.lines().collect();
    let under = lines
        .windows(2)
        .find(|pair| is_source(pair[0]) && pair[1].trim_start().starts_with('|') && pair[1].contains('^'));
    let Some([source, under]) = under else { return "" };
    let from = under.find('^').expect("a caret");
    let carets = under[from..].chars().take_while(|c| *c == '^').count();
    let column = under[..from].chars().count();
    let mut ends = source.char_indices().map(|(at, _)| at).chain([source.len()]);
    let start = ends.nth(column).unwrap_or(source.len());
    let end = ends.nth(carets - 1).unwrap_or(source.len());
    &source[start..end]
}

/// `13 | #[idempotent(…)]`
fn is_source(line: &str) -> bool {
    let number = line.split(" |").next().expect("a first part").trim();
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

/// Says all that is amiss at once.
fn assert_none(amiss: &[String]) {
    assert!(amiss.is_empty(), "\n{}", amiss.join("\n"));
}

#[test]
fn b9_each_mistake_is_one_error() {
    /// One mistake, and two errors.
    const TWICE: [(&str, &str); 1] = [(
        "types/crate_is_nowhere",
        "rustc looks for a macro and for a function of the crate, and misses both",
    )];
    let mut amiss = Vec::new();
    for case in cases() {
        let listed = TWICE.iter().any(|(name, _)| *name == case.name);
        let (offences, errors) = (case.offences() + usize::from(listed), case.errors().len());
        if offences != errors {
            amiss.push(format!("{}: {offences} offences, {errors} errors", case.name));
        }
    }
    assert_none(&amiss);
}

#[test]
fn b9_no_error_points_at_a_whole_attribute() {
    const THERE: [(&str, &str); 4] = [
        ("args/no_key", "what is missing has no place of its own"),
        ("args/nothing", "what is missing has no place of its own"),
        ("args/nothing_for_no_parameter", "what is missing has no place of its own"),
        ("shape/twice", "the second attribute is the mistake"),
    ];
    let mut amiss = Vec::new();
    for case in cases() {
        let whole = |error: &&str| underlined(error).starts_with("#[idempotent");
        let listed = THERE.iter().any(|(name, _)| *name == case.name);
        if case.errors().iter().any(whole) != listed {
            amiss.push(format!("{} ({})", case.name, if listed { "no more" } else { "not listed" }));
        }
    }
    assert_none(&amiss);
}

#[test]
fn b9_no_message_speaks_of_what_is_ours_alone() {
    const OURS: [&str; 9] = [
        "__private",
        "__idem",
        "Call<",
        "Call::<",
        "ControlFlow",
        "FromResidual",
        "AsyncFn",
        "Admitted",
        "closure body",
    ];
    /// Lines of rustc's that do, and why they stand.
    const STANDING: [(&str, &str); 5] = [
        ("note: required by a bound in `idem_runtime::__private::", "rustc names the bound that is not kept"),
        ("pub fn stored<R>(ticket: Box<Ticket>) -> Call<R, R::Ok, R::Err>", "and shows where it is"),
        (
            "pub fn phase_call<T: Stored, E: PhaseError>(ticket: Box<Ticket>) -> Call<Result<T, E>, T, E> {",
            "there too",
        ),
        (
            "note: this error originates in the macro `$crate::__private::phase` which comes from the expansion of the macro `phase`",
            "rustc names the macro inside of the one that users call",
        ),
        (
            "help: within `{async closure body@",
            "a future that is not `Send` is the body's, which has no name",
        ),
    ];
    let mut amiss = Vec::new();
    let mut stood = [0; STANDING.len()];
    for case in cases() {
        for line in case.stderr.lines().filter(|line| OURS.iter().any(|word| line.contains(word))) {
            match STANDING.iter().position(|(standing, _)| line.contains(standing)) {
                Some(at) => stood[at] += 1,
                None => amiss.push(format!("{}: {line}", case.name)),
            }
        }
    }
    let gone = STANDING.iter().zip(stood).filter(|(_, stood)| *stood == 0);
    amiss.extend(
        gone.map(|((standing, _), _)| format!("no message has `{standing}`: strike it from the list")),
    );
    assert_none(&amiss);
}

#[test]
fn no_two_cases_say_the_same_of_the_same() {
    /// One mistake in several shapes, each of which could lose its message by itself.
    const SHAPES: [&[&str]; 18] = [
        &["args/mode_with_parentheses", "args/mode_without_value"],
        &["args/record_after_with_on_stale", "args/record_after_with_probe"],
        &["args/wait_for_with_error", "args/wait_for_without_wait"],
        &["phase/body_of_a_plain_block", "phase/body_of_a_plain_block_that_waits"],
        &["phase/name_behind_the_body", "phase/name_missing"],
        &["phase/option_in_parentheses", "phase/option_without_value"],
        &[
            "phase/two_of_one_name",
            "phase/two_of_one_name_by_path",
            "phase/two_of_one_name_for_each_element",
            "phase/two_of_one_name_in_branches",
            "phase/two_of_one_name_inside_a_macro",
        ],
        &["shape/borrowed_result", "shape/borrowed_result_under_async_trait"],
        &["shape/impl_trait_as_the_result", "shape/impl_trait_in_the_result"],
        &[
            "shape/type_parameter_in_a_bound_alone",
            "shape/type_parameter_in_the_result_alone",
            "shape/type_parameter_unmentioned",
        ],
        &["tx/generic", "tx/generic_with_classify"],
        &["tx/number", "tx/number_under_async_trait"],
        &["tx/with_on_stale", "tx/with_probe"],
        &["types/derive_on_a_struct_without_fields", "types/derive_on_a_unit_struct"],
        &["types/option_in_the_key", "types/optional_part_in_a_key_fn"],
        &[
            "types/probe_and_result_without_serde",
            "types/result_under_async_trait",
            "types/result_without_serde",
        ],
        &["types/probe_finds_something_else", "types/probe_finds_something_else_sync"],
        &["types/tail_of_another_type", "types/tail_of_another_type_sync"],
    ];
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for case in cases() {
        let (folder, _) = case.name.split_once('/').expect("a folder");
        let mut text = folder.to_owned();
        for error in case.errors() {
            let lines =
                error.lines().filter(|line| !is_source(line) && !line.trim_start().starts_with("-->"));
            let lines: Vec<_> = lines.map(|line| line.trim_start_matches([' ', '|', '^'])).collect();
            text = format!("{text}\n{}\n{}", underlined(error), lines.join("\n"));
        }
        said.entry(text).or_default().push(case.name);
    }
    let mut same: Vec<_> = said.into_values().filter(|cases| cases.len() > 1).collect();
    same.sort();
    assert_eq!(same, SHAPES);
}

#[test]
fn b9_each_mistake_that_the_macro_finds_leaves_what_it_is_about_in_use() {
    let mut amiss = Vec::new();
    for case in cases().filter(|case| case.errors().iter().any(|error| error.starts_with("error: "))) {
        let (name, rest) = case.item().unwrap_or_else(|| panic!("{}: nothing is annotated", case.name));
        if !words(rest).iter().any(|(word, _)| *word == name) {
            amiss.push(format!("{}: `{name}` is not used", case.name));
        }
    }
    assert_none(&amiss);
}
