//! What is wrong with a template, shown in the template.

use std::{cmp::Reverse, ops::Range};

/// One thing that is wrong, and the way out.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    at: Range<usize>,
    fact: String,
    remedy: Remedy,
}

#[derive(Debug, PartialEq)]
enum Remedy {
    Say(String),
    /// Write the corrected template; then a word more.
    Write(Vec<Edit>, String),
}

/// A part of a template, and what should stand there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edit {
    pub(super) at: Range<usize>,
    pub(super) with: String,
}

impl Edit {
    pub(super) fn new(at: Range<usize>, with: impl Into<String>) -> Self {
        Self { at, with: with.into() }
    }
}

impl Fault {
    /// A fault whose remedy is a sentence.
    pub(crate) fn say(at: Range<usize>, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { at, fact: fact.into(), remedy: Remedy::Say(remedy.into()) }
    }

    /// A fault whose remedy is another template, followed by `more`.
    pub(super) fn write(at: Range<usize>, fact: impl Into<String>, edits: Vec<Edit>, more: &str) -> Self {
        Self { at, fact: fact.into(), remedy: Remedy::Write(edits, more.to_owned()) }
    }

    /// A placeholder that is nearly another, which is written `right`.
    pub(crate) fn misspelled(at: Range<usize>, fact: impl Into<String>, right: &str, more: &str) -> Self {
        let edits = vec![Edit::new(at.clone(), right)];
        Self::write(at, fact, edits, more)
    }

    /// The fact, the template with the offending part underlined, the remedy. A corrected template is corrected
    /// for all the `faults` that were found in it.
    pub(crate) fn show(&self, source: &str, faults: &[Self]) -> String {
        let Self { at, fact, .. } = self;
        let remedy = match &self.remedy {
            Remedy::Say(remedy) => remedy.clone(),
            Remedy::Write(..) if faults.is_empty() => self.show_corrected(source, std::slice::from_ref(self)),
            Remedy::Write(..) => self.show_corrected(source, faults),
        };
        if at.is_empty() {
            return format!("{fact}\n{remedy}");
        }
        let width = |text: &str| visible(text).chars().count();
        let before = " ".repeat(width(&source[..at.start]));
        let under = "^".repeat(width(&source[at.clone()]).max(1));
        format!("{fact}\n\n    {}\n    {before}{under}\n{remedy}", visible(source))
    }

    fn show_corrected(&self, source: &str, faults: &[Self]) -> String {
        let Remedy::Write(_, more) = &self.remedy else { return String::new() };
        format!("write `{}`{more}", visible(&corrected(source, faults)))
    }
}

#[cfg(any(test, fuzzing))]
impl Fault {
    /// Whether the remedy is another template.
    pub(super) fn writes(&self) -> bool {
        matches!(self.remedy, Remedy::Write(..))
    }

    /// What is underlined, and what is written anew.
    pub(super) fn places(&self) -> Vec<Range<usize>> {
        let mut places = vec![self.at.clone()];
        if let Remedy::Write(edits, _) = &self.remedy {
            places.extend(edits.iter().map(|edit| edit.at.clone()));
        }
        places
    }
}

/// The template after all edits; of two that overlap, the wider.
pub(super) fn corrected(source: &str, faults: &[Fault]) -> String {
    let mut edits: Vec<&Edit> = Vec::new();
    for fault in faults {
        if let Remedy::Write(more, _) = &fault.remedy {
            edits.extend(more);
        }
    }
    edits.sort_by_key(|edit| (edit.at.start, !edit.at.is_empty(), Reverse(edit.at.end)));
    let (mut text, mut done) = (String::new(), 0);
    for edit in edits {
        if edit.at.start >= done {
            text.push_str(&source[done..edit.at.start]);
            text.push_str(&edit.with);
            done = edit.at.end;
        }
    }
    text.push_str(&source[done..]);
    text
}

/// The text on one line: control characters spelled out.
pub(super) fn visible(text: &str) -> String {
    let spell = |c: char| if c.is_control() { c.escape_debug().collect() } else { String::from(c) };
    text.chars().map(spell).collect()
}
