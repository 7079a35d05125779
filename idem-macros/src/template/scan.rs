//! The first pass over a template: text, placeholders, and what was meant as one.

use std::ops::Range;

use super::{
    Placeholder, SEPARATORS, Scope,
    fault::{Edit, Fault, visible},
};

pub(super) enum Piece {
    Text(String),
    Hole(Placeholder),
    /// A placeholder that could not be read.
    Broken,
}

pub(super) struct Scan<'a> {
    source: &'a str,
    scope: &'a Scope<'a>,
    at: usize,
    pub(super) pieces: Vec<Piece>,
    pub(super) faults: Vec<Fault>,
    pub(super) suspects: Vec<Placeholder>,
}

impl<'a> Scan<'a> {
    pub(super) fn run(source: &'a str, scope: &'a Scope<'a>) -> Self {
        let mut scan =
            Self { source, scope, at: 0, pieces: Vec::new(), faults: Vec::new(), suspects: Vec::new() };
        while let Some(next) = scan.rest().chars().next() {
            scan.step(next);
        }
        scan
    }

    fn step(&mut self, next: char) {
        match next {
            '<' if self.rest().starts_with("<<") => self.text('<', 2),
            '<' => self.placeholder(),
            '>' if self.rest().starts_with(">>") => self.text('>', 2),
            '>' => self.stray(),
            _ if self.foreign() || self.bare() => {}
            '%' => self.reserved(|c| c == '%', "no `%`: it begins an escape in a key"),
            '/' => self.reserved(|c| c == '/', "no `/`: it stands before the name of a phase"),
            _ if next.is_whitespace() => self.reserved(char::is_whitespace, "no white space"),
            _ if next.is_control() => self.reserved(char::is_control, "no control character"),
            _ => self.text(next, next.len_utf8()),
        }
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn text(&mut self, c: char, length: usize) {
        self.push(c.encode_utf8(&mut [0; 4]));
        self.at += length;
    }

    fn push(&mut self, more: &str) {
        if let Some(Piece::Text(text)) = self.pieces.last_mut() {
            text.push_str(more);
        } else if !more.is_empty() {
            self.pieces.push(Piece::Text(more.to_owned()));
        }
    }

    /// A placeholder that was read, or guessed beside a fault; the scan goes on behind it.
    fn hole(&mut self, path: Option<Vec<String>>, at: Range<usize>) {
        self.at = at.end;
        self.pieces.push(path.map_or(Piece::Broken, |path| Piece::Hole(Placeholder { path, at })));
    }

    fn placeholder(&mut self) {
        let inside = &self.rest()[1..];
        match inside.find(['<', '>']) {
            Some(length) if inside[length..].starts_with('>') => {
                let at = self.at..self.at + length + 2;
                let inside = &inside[..length];
                let path = path(inside).or_else(|| self.bad_path(inside, &at));
                self.hole(path, at);
            }
            Some(length) if closes_twice(&inside[length..]) && path(&inside[..length]).is_some() => {
                let end = inside.find(">>").unwrap_or(length) + 2;
                let at = self.at..self.at + 1 + end;
                let fact = "a placeholder inside a placeholder";
                self.faults.push(Fault::say(
                    at.clone(),
                    fact,
                    "write them side by side, with a separator between them",
                ));
                self.hole(None, at);
            }
            _ => self.unclosed(inside),
        }
    }

    /// Reports it; gives the path that was meant, where that shows.
    fn bad_path(&mut self, inside: &str, at: &Range<usize>) -> Option<Vec<String>> {
        let parameters = self.scope.list();
        if inside.trim().is_empty() {
            let fact = format!("`<{}>` names no parameter", visible(inside));
            let remedy = format!(
                "name one (the parameters are {parameters}), or write `<<` and `>>` for the characters themselves"
            );
            self.faults.push(Fault::say(at.clone(), fact, remedy));
            return None;
        }
        let fact = format!(
            "`<{}>` is not a parameter or a path of fields such as `<order.customer.id>`",
            visible(inside)
        );
        let guess = self.guess(inside);
        self.faults.push(if let Some(path) = &guess {
            Fault::write(at.clone(), fact, vec![Edit::new(at.clone(), format!("<{path}>"))], "")
        } else {
            let remedy = "compute the value in the caller and pass it in";
            Fault::say(at.clone(), fact, format!("{remedy} (the parameters are {parameters})"))
        });
        guess.and_then(|guess| path(&guess))
    }

    /// The path of fields that an expression or a misspelled name begins with, where that starts at a parameter.
    fn guess(&self, inside: &str) -> Option<String> {
        let segments: Vec<_> = inside.split('.').filter(|segment| !segment.is_empty()).collect();
        let tidy = segments.join(".").replace('-', "_");
        if self.scope.knows(&tidy) {
            return Some(tidy);
        }
        let start = inside.find(|c: char| c.is_alphabetic() || c == '_')?;
        let found = leading_path(&inside[start..]);
        let called = inside[start + found.len()..].starts_with('(');
        let found = if called { found.rsplit_once('.').map_or("", |(path, _)| path) } else { found };
        self.scope.knows(found).then(|| found.to_owned())
    }

    fn unclosed(&mut self, inside: &str) {
        let name = leading_path(inside);
        let at = self.at..self.at + 1 + name.len();
        if !self.scope.knows(name) {
            let fact = "`<` opens a placeholder that is not closed";
            let remedy = format!(
                "close it with `>` behind a parameter (the parameters are {}), or write `<<` for a literal `<`",
                self.scope.list()
            );
            self.faults.push(Fault::say(at.clone(), fact, remedy));
            return self.hole(None, at);
        }
        let (closing, separator) =
            if inside[name.len()..].starts_with('<') { (">:", ":") } else { (">", "") };
        let fact = format!("the placeholder `<{name}` is not closed");
        self.faults.push(Fault::write(at.clone(), fact, vec![Edit::new(at.end..at.end, closing)], ""));
        self.hole(path(name), at);
        self.push(separator);
    }

    fn stray(&mut self) {
        let at = self.at..self.at + 1;
        let fact = "a stray `>` that closes no placeholder";
        if matches!(self.pieces.last(), Some(Piece::Hole(_))) {
            let with = if self.source[at.end..].starts_with('<') { ":" } else { "" };
            self.at = at.end;
            self.faults.push(Fault::write(at.clone(), fact, vec![Edit::new(at, with)], ""));
            return self.push(with);
        }
        let edit = Edit::new(at.clone(), ">>");
        self.faults.push(Fault::write(at, fact, vec![edit], " for a literal `>`"));
        self.text('>', 1);
    }

    /// A placeholder in another language's spelling, where it is sure to be one.
    fn foreign(&mut self) -> bool {
        let rest = self.rest();
        let (name, length) = match (printf(rest), braced(rest)) {
            (Some(length), _) => (self.next_parameter(), length),
            (None, Some((name, length))) if is_position(name) => (self.next_parameter(), length),
            (None, Some((name, length))) if self.scope.knows(name) => (Some(name.to_owned()), length),
            (None, Some((name, length))) => {
                let at = self.at..self.at + length;
                self.suspects.extend(path(name).map(|path| Placeholder { path, at }));
                return false;
            }
            _ => return false,
        };
        let at = self.at..self.at + length;
        let written = visible(&rest[..length]);
        let Some(name) = name else {
            let fact = format!("`{written}` is not a placeholder; one is written `<parameter>`");
            self.faults.push(Fault::say(
                at.clone(),
                fact,
                "take a parameter that tells one job from another",
            ));
            self.hole(None, at);
            return true;
        };
        let lead = match self.pieces.last() {
            Some(Piece::Text(_)) => String::new(),
            Some(_) => ":".to_owned(),
            None => format!("{}:", self.scope.function),
        };
        let fact = format!("`{written}` is not a placeholder; one is written `<{name}>`");
        let edit = Edit::new(at.clone(), format!("{lead}<{name}>"));
        self.faults.push(Fault::write(at.clone(), fact, vec![edit], ""));
        self.push(&lead);
        self.hole(path(&name), at);
        true
    }

    /// A parameter's name as a segment of fixed text, where that is sure to be meant as a placeholder: the word would be
    /// the same in every call, and what was to tell them apart is lost.
    fn bare(&mut self) -> bool {
        let begins = matches!(self.pieces.last(), Some(Piece::Text(text)) if text.ends_with(SEPARATORS));
        let rest = self.rest();
        let (inner, close) = undecorated(rest);
        let name = leading_path(inner);
        if !begins || self.scope.singleton || !self.scope.knows(name) || !self.is_lost(name) {
            return false;
        }
        let Some(behind) = inner[name.len()..].strip_prefix(close) else { return false };
        let after = behind.trim_start_matches(vanishes);
        if !(after.is_empty() || after.starts_with(SEPARATORS) || behind.starts_with('/')) {
            return false;
        }
        let written = &rest[..rest.len() - behind.len()];
        let at = self.at..self.at + written.len();
        let (fact, more) = if written == name {
            (
                format!(
                    "`{name}` is fixed text here, the same in every call; the parameter is written `<{name}>`"
                ),
                ", or another word if it is fixed text",
            )
        } else {
            (format!("`{written}` is not a placeholder; one is written `<{name}>`"), "")
        };
        let edit = Edit::new(at.clone(), format!("<{name}>"));
        self.faults.push(Fault::write(at.clone(), fact, vec![edit], more));
        self.hole(path(name), at);
        true
    }

    /// Whether a name tells one job from another, and no placeholder holds it.
    fn is_lost(&self, name: &str) -> bool {
        let root = name.split('.').next().unwrap_or_default();
        let last = name.rsplit(['.', '_']).next().unwrap_or_default();
        let holes = [format!("<{root}>"), format!("<{root}.")];
        (self.scope.tells_apart)(last) && !holes.iter().any(|hole| self.source.contains(&**hole))
    }

    /// The first parameter that the key does not name so far, for a placeholder that names none.
    fn next_parameter(&self) -> Option<String> {
        let named = |name: &String| {
            self.pieces.iter().any(|piece| matches!(piece, Piece::Hole(hole) if hole.root() == name))
        };
        let parameters = || self.scope.parameters.iter().filter(|name| *name != "self");
        parameters().find(|name| !named(name)).or_else(|| parameters().next()).cloned()
    }

    /// Characters that fixed text may not hold. What stands in for them is kept, since it may separate.
    fn reserved(&mut self, is_reserved: fn(char) -> bool, rule: &str) {
        let rest = self.rest();
        let length = rest.find(|c| !is_reserved(c)).unwrap_or(rest.len());
        let at = self.at..self.at + length;
        let after = &self.source[at.end..];
        let separates = match self.pieces.last() {
            None => true,
            Some(Piece::Text(text)) => text.ends_with(SEPARATORS),
            Some(_) => false,
        };
        let with = match () {
            // A `:` there, or nothing, might make of it what `format!` reads as a placeholder.
            () if self.in_braces() => "-",
            () if separates || after.is_empty() || after.starts_with(SEPARATORS) => "",
            () if rest.starts_with('/') || matches!(self.pieces.last(), Some(Piece::Hole(_))) => ":",
            () => "-",
        };
        let fact = format!("fixed text holds {rule}");
        self.faults.push(Fault::write(at.clone(), fact, vec![Edit::new(at.clone(), with)], ""));
        self.at = at.end;
        self.push(with);
    }

    /// Whether a brace is open.
    fn in_braces(&self) -> bool {
        matches!(self.pieces.last(), Some(Piece::Text(text)) if text.rfind('{') > text.rfind('}'))
    }
}

/// What stands behind the sign with which people say that a name stands for a value, and what closes it: `[id]`, `@id`.
fn undecorated(text: &str) -> (&str, &'static str) {
    const SIGNS: [(char, &str); 7] =
        [('[', "]"), ('(', ")"), ('‹', "›"), ('«', "»"), ('@', ""), ('&', ""), ('*', "")];
    let sign = SIGNS.iter().find(|(sign, _)| text.starts_with(*sign));
    sign.map_or((text, ""), |(sign, close)| (&text[sign.len_utf8()..], close))
}

/// What fixed text may not hold, and what no correction puts anything in place of at the end of a segment.
fn vanishes(c: char) -> bool {
    c == '%' || c.is_whitespace() || c.is_control()
}

/// `order.customer.id` as its segments; `None` for anything else.
pub(super) fn path(written: &str) -> Option<Vec<String>> {
    let mut segments = Vec::new();
    for segment in written.split('.') {
        let name = segment.strip_prefix("r#").unwrap_or(segment);
        let index = !segments.is_empty() && !name.is_empty() && name.chars().all(|c| c.is_ascii_digit());
        let canonical = index && (name == "0" || !name.starts_with('0'));
        if !canonical && !is_identifier(name) {
            return None;
        }
        segments.push(name.to_owned());
    }
    Some(segments)
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    let starts = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_');
    starts && name != "_" && chars.all(|c| c.is_alphanumeric() || c == '_')
}

/// Whether braces hold a position, as in `{}` and `{0}`, and no name.
fn is_position(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_digit())
}

/// The longest head that reads as a path: of `user_id:<month>` it is `user_id`.
fn leading_path(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.')).unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// Whether an inner placeholder is followed by the end of an outer one.
fn closes_twice(text: &str) -> bool {
    text.find('>').is_some_and(|end| text[end..].starts_with(">>"))
}

/// The length of `%s` and its like.
fn printf(text: &str) -> Option<usize> {
    let tail = text.strip_prefix('%')?;
    let named =
        tail.starts_with(['(', '{']).then(|| tail.find([')', '}'])).flatten().map_or(0, |end| end + 1);
    let kind = tail[named..].chars().next()?;
    let after = &tail[named + kind.len_utf8()..];
    let ends = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    (ends && matches!(kind, 's' | 'd' | 'i' | 'u' | 'v' | '1')).then(|| 1 + named + kind.len_utf8())
}

/// The name in `{name}`, `{name:?}`, `{{name}}`, `${name}` or `$name`, and the length of it all.
fn braced(text: &str) -> Option<(&str, usize)> {
    let inner = text.strip_prefix('$').unwrap_or(text);
    let sigil = text.len() - inner.len();
    let open = inner.len() - inner.trim_start_matches('{').len();
    if open == 0 {
        let name = leading_path(inner);
        return (sigil > 0 && !name.is_empty()).then_some((name, sigil + name.len()));
    }
    let end = open + inner[open..].find('}')?;
    let name = inner[open..end].split(':').next()?.trim();
    let close = inner[end..].len() - inner[end..].trim_start_matches('}').len();
    Some((name, sigil + end + close.min(open)))
}
