//! Key templates, as pure strings: fixed text, placeholders, and what can be wrong with them.

mod fault;
#[cfg(any(test, fuzzing))]
pub(crate) mod laws;
mod scan;

use std::ops::Range;

use fault::Edit;
pub(crate) use fault::Fault;
use scan::{Piece, Scan, path};

/// What may stand between two values. Inside a value each of them is escaped.
const SEPARATORS: [char; 3] = [':', '|', '#'];

/// The most bytes of fixed text; the readable head of a hashed key holds as many.
const TEXT_LIMIT: usize = 189;

/// `"billing:<user_id>:<month>"`: one fixed text before, between and after the placeholders.
#[derive(Debug, PartialEq)]
pub(crate) struct Template {
    pub(crate) texts: Vec<String>,
    pub(crate) placeholders: Vec<Placeholder>,
    /// Fixed text that looks like a placeholder of another language, and names no parameter as it stands.
    pub(crate) suspects: Vec<Placeholder>,
    /// Whether a placeholder was meant and could not be read; its fault is reported.
    broken: bool,
}

/// `<order.customer.id>`: a parameter, or a path of fields from one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placeholder {
    /// The parameter and the fields, without `r#`.
    pub(crate) path: Vec<String>,
    /// Where it stands in the template.
    pub(crate) at: Range<usize>,
}

/// What the template's function looks like, for a message that knows what was meant.
pub(crate) struct Scope<'a> {
    pub(crate) function: &'a str,
    pub(crate) parameters: &'a [String],
    /// Whether one key for all calls is meant, so that no word of it stands for a value.
    pub(crate) singleton: bool,
    /// Whether a name with this last word is there to tell one job from another.
    pub(crate) tells_apart: fn(&str) -> bool,
}

impl Placeholder {
    pub(crate) fn root(&self) -> &str {
        &self.path[0]
    }

    pub(crate) fn last(&self) -> &str {
        &self.path[self.path.len() - 1]
    }

    /// The path as it is written in the template.
    pub(crate) fn name(&self) -> String {
        self.path.join(".")
    }
}

impl Template {
    /// Whether a placeholder begins with this parameter.
    pub(crate) fn names(&self, parameter: &str) -> bool {
        self.placeholders.iter().any(|placeholder| placeholder.root() == parameter)
    }

    /// Reads a template. What can be read stands in the result even beside faults, so that other checks go on.
    pub(crate) fn parse(source: &str, scope: &Scope<'_>) -> (Self, Vec<Fault>) {
        let Scan { pieces, mut faults, suspects, .. } = Scan::run(source, scope);
        if source.is_empty() {
            faults.push(Fault::say(
                0..0,
                "the key is empty",
                format!("say what the job is for, such as `{}:<…>`", scope.function),
            ));
        }
        check_separators(&pieces, &mut faults);
        if let Some(Piece::Hole(first)) = pieces.first() {
            faults.push(Fault::write(
                first.at.clone(),
                "the key has no fixed text before its first placeholder, so other jobs could render the same key",
                vec![Edit::new(0..0, format!("{}:", scope.function))],
                "",
            ));
        }
        let template = Self::assemble(pieces, suspects);
        let bytes: usize = template.texts.iter().map(String::len).sum();
        if bytes > TEXT_LIMIT {
            faults.push(Fault::say(
                0..0,
                format!("the key's fixed text is {bytes} bytes long, and {TEXT_LIMIT} is the most"),
                "shorten it: a name for the job and the values that tell its calls apart are enough",
            ));
        }
        (template, faults)
    }

    fn assemble(pieces: Vec<Piece>, suspects: Vec<Placeholder>) -> Self {
        let mut template =
            Self { texts: vec![String::new()], placeholders: Vec::new(), suspects, broken: false };
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    if let Some(last) = template.texts.last_mut() {
                        last.push_str(&text);
                    }
                }
                Piece::Hole(placeholder) => {
                    template.placeholders.push(placeholder);
                    template.texts.push(String::new());
                }
                Piece::Broken => template.broken = true,
            }
        }
        template
    }

    /// Whether every call renders one and the same key.
    pub(crate) fn is_constant(&self) -> bool {
        self.placeholders.is_empty() && !self.broken
    }

    /// What to say where that is not meant.
    pub(crate) fn constant_fault(source: &str, scope: &Scope<'_>) -> Fault {
        let fact = "the key has no placeholder, so all calls would share one key";
        let edits = meant(source, scope);
        if let Some(first) = edits.first() {
            let fact = format!("{fact}; one is written `{}`", first.with);
            return Fault::write(first.at.clone(), fact, edits, "");
        }
        let whole = 0..source.len();
        let singleton = "say `singleton` if one key for all calls is meant";
        let Some(name) = scope.first() else { return Fault::say(whole, fact, singleton) };
        let separator = if source.ends_with(SEPARATORS) { "" } else { ":" };
        let edit = Edit::new(whole.end..whole.end, format!("{separator}<{name}>"));
        let more = format!(" with the parameters that tell one job from another, or {singleton}");
        Fault::write(whole, fact, vec![edit], &more)
    }
}

/// What was meant as placeholders in a template without one: `users:{user}`, `users:@user_id`.
fn meant(source: &str, scope: &Scope<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut at = 0;
    for segment in source.split(SEPARATORS) {
        let braced = segment.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
        let bare = segment.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let name =
            braced.filter(|inner| path(inner).is_some()).or(Some(bare).filter(|name| scope.knows(name)));
        if let Some(name) = name
            && at > 0
        {
            edits.push(Edit::new(at..at + segment.len(), format!("<{name}>")));
        }
        at += segment.len() + 1;
    }
    edits
}

fn check_separators(pieces: &[Piece], faults: &mut Vec<Fault>) {
    for (index, piece) in pieces.iter().enumerate() {
        let Piece::Hole(left) = piece else { continue };
        let (between, right) = match &pieces[index + 1..] {
            [Piece::Hole(right), ..] => ("", right),
            [Piece::Text(text), Piece::Hole(right), ..] => (text.as_str(), right),
            _ => continue,
        };
        if between.contains(SEPARATORS) {
            continue;
        }
        let mut gap = left.at.end..right.at.start;
        if between.chars().any(char::is_alphanumeric) {
            gap.end = gap.start;
        }
        let fact = format!(
            "no separator between `<{}>` and `<{}>`, so different values could render the same key",
            left.name(),
            right.name()
        );
        let edit = Edit::new(gap, ":");
        faults.push(Fault::write(
            left.at.start..right.at.end,
            fact,
            vec![edit],
            " (`|` and `#` separate too)",
        ));
    }
}

impl Scope<'_> {
    /// Whether a path starts at a parameter.
    fn knows(&self, written: &str) -> bool {
        path(written).is_some_and(|path| self.parameters.contains(&path[0]))
    }

    /// The first parameter that is not the receiver.
    fn first(&self) -> Option<&str> {
        self.parameters.iter().map(String::as_str).find(|name| *name != "self")
    }

    fn list(&self) -> String {
        let names: Vec<_> = self.parameters.iter().map(|name| format!("`{name}`")).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}

#[cfg(test)]
mod tests;
