//! What the documents show of what the compiler refuses: examples and messages are the cases of `tests/ui`, each
//! written between marks that name it.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result};

/// The documents that show some, in the workspace; the first has every class.
pub(crate) const PATHS: [&str; 2] = ["docs/compile-errors.md", "README.md"];

/// Names the case that is shown behind it: `<!-- ui: key/unclosed -->`.
const OPEN: &str = "<!-- ui: ";
const CLOSE: &str = "<!-- end -->";

/// The document, with each case as it is in the workspace now.
pub(crate) fn refreshed(document: &str, workspace: &Path) -> Result<String> {
    let mut pieces = document.split(OPEN);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (case, rest) = piece.split_once(" -->").context("a mark `<!-- ui: …` is not closed")?;
        let (_, rest) = rest.split_once(CLOSE).with_context(|| format!("no `{CLOSE}` behind `{case}`"))?;
        let file = |extension| {
            let path = workspace.join(format!("tests/ui/{case}.{extension}"));
            fs::read_to_string(&path).with_context(|| format!("{}", path.display()))
        };
        let (source, message) = (example(&file("rs")?), message(&file("stderr")?));
        write!(
            text,
            "{OPEN}{case} -->\n```rust,ignore\n{source}\n```\n\n```text\n{message}\n```\n{CLOSE}{rest}"
        )?;
    }
    Ok(text)
}

/// The items of a case, without what only makes it a file that calls them.
fn example(source: &str) -> String {
    const AROUND: [&str; 6] = ["#![", "use ", "macro_rules! ", "fn main(", "fn call(", "fn part("];
    let items = source.split("\n\n").map(str::trim_end);
    let items = items.filter(|item| !AROUND.iter().any(|around| item.starts_with(around)));
    items.collect::<Vec<_>>().join("\n\n")
}

/// What the compiler says, without the numbers of its lines and the names of its files.
fn message(stderr: &str) -> String {
    let lines =
        stderr.lines().filter(|line| !is_place(line) && !line.contains("note: this error originates in"));
    lines.map(without_number).filter(|line| line.trim() != "|").collect::<Vec<_>>().join("\n")
}

/// ` --> ui/key/unclosed.rs:5:20`
fn is_place(line: &str) -> bool {
    line.trim_start().starts_with("--> ")
}

/// `5 | #[idempotent]` without the `5`.
fn without_number(line: &str) -> String {
    match line.split_once(" |") {
        Some((number, rest)) if number.trim().chars().all(|c| c.is_ascii_digit()) => {
            format!("{} |{rest}", " ".repeat(number.len()))
        }
        _ => line.to_owned(),
    }
}
