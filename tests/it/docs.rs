//! The documents say what is so: each test that they name exists, and what they show is what there is.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use idem_runtime::{__private::render, Job, KeyPart, jobs};

#[path = "../../xtask/src/document.rs"]
mod document;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(file: impl AsRef<Path>) -> String {
    let file = root().join(file);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The files below a folder with an extension.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// Each document, by its name.
fn documents() -> impl Iterator<Item = (String, String)> {
    let mut found = vec![root().join("README.md")];
    files(&root().join("docs"), "md", &mut found);
    found.into_iter().map(|path| (path.display().to_string(), read(&path)))
}

/// What stands in backticks outside of code blocks.
fn quoted(document: &str) -> impl Iterator<Item = &str> {
    let prose = document.split("```").step_by(2);
    prose.flat_map(|prose| prose.split('`').skip(1).step_by(2))
}

/// Every function of the tests, and of the tests inside of the crates, by its bare name.
fn functions() -> BTreeSet<String> {
    let mut sources = Vec::new();
    for folder in ["tests", "idem-runtime/src", "idem-macros/src", "examples/src"] {
        files(&root().join(folder), "rs", &mut sources);
    }
    let mut functions = BTreeSet::new();
    for source in sources {
        let text = read(source);
        for (_, rest) in text.match_indices("fn ").map(|(at, word)| text.split_at(at + word.len())) {
            functions
                .extend(rest.split(|c: char| c != '_' && !c.is_alphanumeric()).next().map(str::to_owned));
        }
        // Tests that a macro makes of a list, a name on each line.
        let listed = text.lines().map(|line| line.trim().trim_end_matches(" => attribute;"));
        functions.extend(listed.filter(|line| line.contains('_') && !line.contains(' ')).map(str::to_owned));
    }
    functions
}

#[test]
fn each_test_that_a_document_names_exists() {
    const SUITES: [&str; 13] = [
        "breaks::",
        "cases::",
        "chaos::",
        "conformance::",
        "deaths::",
        "examples::",
        "kit::",
        "model::",
        "phases::",
        "probes::",
        "python::",
        "transact::",
        "watching::",
    ];
    let functions = functions();
    let mut named = 0;
    for (document, text) in documents() {
        for test in quoted(&text).filter(|text| SUITES.iter().any(|suite| text.starts_with(suite))) {
            let name = test.rsplit("::").next().expect("a last segment");
            assert!(functions.contains(name), "{document} names `{test}`, which is nowhere");
            named += 1;
        }
    }
    assert!(named > 60, "{named}");
}

#[test]
fn each_refusal_is_documented_with_its_message() {
    for path in document::PATHS {
        let text = read(path);
        let current = document::refreshed(&text, &root()).expect("a document");
        assert!(text == current, "{path} is out of date: `cargo xtask docs` writes it");
    }
    let text = read(document::PATHS[0]);
    for folder in ["key", "args", "shape", "types", "phase", "tx"] {
        let shown = text.matches(&format!("<!-- ui: {folder}/")).count();
        assert!(shown > 0, "none of {folder}");
        for case in quoted(&text).filter(|text| text.starts_with(&format!("{folder}/"))) {
            assert!(root().join(format!("tests/ui/{case}.stderr")).exists(), "{case}");
        }
    }
}

#[test]
fn the_conflict_that_is_documented_is_what_a_test_is_told() {
    let overlaps = jobs::check().expect_err("functions of the cases that share a key");
    let is = |job: &Job, name: &str| job.path().ends_with(&format!("cases::a1::{name}"));
    let pair = overlaps.pairs().iter().find(|pair| is(pair.first, "charge") && is(pair.second, "refund"));
    let pair = pair.expect("both functions");
    let mut said = pair.to_string().replace(pair.first.shape(), "invoice:<>");
    for (job, path, place) in [
        (pair.first, "billing::charge", "src/billing.rs:12"),
        (pair.second, "billing::refund", "src/billing.rs:20"),
    ] {
        said = said.replace(job.path(), path).replace(&job.location(), place);
    }
    assert!(read(document::PATHS[0]).contains(&format!("```text\n{said}\n```")), "{said}");
}

#[test]
fn each_file_that_a_document_links_exists() {
    for (document, text) in documents() {
        let folder = Path::new(&document).parent().expect("a folder").to_owned();
        for (_, rest) in text.match_indices("](").map(|(at, mark)| text.split_at(at + mark.len())) {
            let link = rest.split(')').next().expect("a link");
            let file = link.split('#').next().expect("a file");
            let local = !link.contains("://") && !file.is_empty();
            assert!(!local || folder.join(file).exists(), "{document} links {link}");
        }
    }
}

#[test]
fn the_readme_counts_the_deliveries() {
    let readme = read("README.md");
    for (file, jobs) in
        [("deliveries", "80 charges"), ("orders", "40 orders"), ("transfers", "250 transfers")]
    {
        let deliveries = read(format!("examples/data/{file}.jsonl")).lines().count();
        assert!(readme.contains(&format!("# {deliveries} deliveries of {jobs}")), "{deliveries} {jobs}");
    }
}

#[test]
fn the_expansion_that_is_shown_is_the_real_one() {
    let text = read("docs/how-it-works.md");
    let snapshot = read("idem-macros/snapshots/async_function.rs");
    let (source, expansion) = snapshot.split_once("// expands to").expect("a snapshot with its mark");
    for part in [source, expansion] {
        assert!(text.contains(&format!("```rust,ignore\n{}\n```", part.trim())), "{part}");
    }
}

#[derive(KeyPart)]
struct Pair(&'static str, &'static str);

#[derive(KeyPart)]
struct Nested(Pair, Pair);

#[test]
fn keys_are_rendered_as_documented() {
    // As a `key_fn` renders them; annotated functions would share key spaces with the other tests of this binary.
    let (two, one) = (&["r:", ":", ""], &["k:", ""]);
    let keys = [
        render(&["billing:", ":", ""]).part(&42).part(&"2024-06"),
        render(two).part(&"1:2").part(&"3"),
        render(two).part(&"1").part(&"2:3"),
        render(two).part(&"%3A").part(&"<b>"),
        render(one).part(&"a b"),
        render(one).part(&"é\u{a0}"),
        render(one).part(&"a,b"),
        render(one).part(&Pair("a,b", "c")),
        render(one).part(&Nested(Pair("a", "b"), Pair("c,", "d:"))),
    ];
    let text = read("docs/keys.md");
    let (_, rows) = text.split_once("| template | values | key |\n").expect("the table of keys");
    let documented: Vec<_> = rows.lines().skip(1).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(documented.len(), keys.len());
    for (row, key) in documented.into_iter().zip(keys) {
        let key = key.finish().expect("a key");
        assert!(row.ends_with(&format!("`{key}` |")), "{row} is {key}");
    }
}
