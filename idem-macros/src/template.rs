//! Key templates, as pure strings: fixed text, placeholders, and what can be wrong with them.

use std::ops::Range;

/// What may stand between two values. Inside a value each of them is escaped.
const SEPARATORS: [char; 3] = [':', '|', '#'];

/// The most bytes of fixed text; the readable head of a hashed key holds as many.
const TEXT_LIMIT: usize = 189;

/// `"billing:<user_id>:<month>"`: one fixed text before, between and after the placeholders.
#[derive(Debug, PartialEq)]
pub(crate) struct Template {
    pub(crate) texts: Vec<String>,
    pub(crate) placeholders: Vec<Placeholder>,
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
}

/// One thing that is wrong with a template, and the way out.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    at: Range<usize>,
    fact: String,
    remedy: String,
}

enum Piece {
    Text(String),
    Hole(Placeholder),
    Broken,
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

impl Fault {
    pub(crate) fn new(at: Range<usize>, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { at, fact: fact.into(), remedy: remedy.into() }
    }

    /// The fact, the template with the offending part underlined, the remedy.
    pub(crate) fn show(&self, source: &str) -> String {
        let Self { at, fact, remedy } = self;
        if at.is_empty() {
            return format!("{fact}\n{remedy}");
        }
        let width = |text: &str| visible(text).chars().count();
        let before = " ".repeat(width(&source[..at.start]));
        let under = "^".repeat(width(&source[at.clone()]).max(1));
        format!("{fact}\n\n    {}\n    {before}{under}\n{remedy}", visible(source))
    }
}

/// The text on one line: control characters spelled out.
fn visible(text: &str) -> String {
    let spell = |c: char| if c.is_control() { c.escape_debug().collect() } else { String::from(c) };
    text.chars().map(spell).collect()
}

/// ``write `billing:<user_id>` ``: the template with one part replaced.
fn write_instead(source: &str, at: &Range<usize>, with: &str) -> String {
    format!("write `{}{with}{}`", visible(&source[..at.start]), visible(&source[at.end..]))
}

impl Template {
    /// Reads a template. What can be read stands in the result even beside faults, so that other checks go on.
    pub(crate) fn parse(source: &str, scope: &Scope<'_>) -> (Self, Vec<Fault>) {
        let mut scan = Scan { source, scope, at: 0, pieces: Vec::new(), faults: Vec::new() };
        scan.run();
        let Scan { pieces, mut faults, .. } = scan;
        if source.is_empty() {
            faults.push(Fault::new(
                0..0,
                "the key is empty",
                format!("say what the job is for, such as `{}:<…>`", scope.function),
            ));
        }
        check_separators(source, &pieces, &mut faults);
        if let Some(Piece::Hole(first)) = pieces.first() {
            faults.push(Fault::new(
                first.at.clone(),
                "the key has no fixed text before its first placeholder, so other jobs could render the same key",
                write_instead(source, &(0..0), &format!("{}:", scope.function)),
            ));
        }
        let template = Self::assemble(pieces);
        let bytes: usize = template.texts.iter().map(String::len).sum();
        if bytes > TEXT_LIMIT {
            faults.push(Fault::new(
                0..0,
                format!("the key's fixed text is {bytes} bytes long, and {TEXT_LIMIT} is the most"),
                "shorten it: a name for the job and the values that tell its calls apart are enough",
            ));
        }
        (template, faults)
    }

    fn assemble(pieces: Vec<Piece>) -> Self {
        let mut template = Self { texts: vec![String::new()], placeholders: Vec::new(), broken: false };
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
        if let Some((at, with)) = meant(source, scope) {
            let lead = if at.start == 0 { format!("{}:", scope.function) } else { String::new() };
            let remedy = write_instead(source, &at, &format!("{lead}{with}"));
            return Fault::new(at, format!("{fact}; a placeholder is written `{with}`"), remedy);
        }
        let remedy = match scope.first() {
            Some(name) => format!(
                "write `{}:<{name}>` with the parameters that tell one job from another, \
                 or say `singleton` if one key for all calls is meant",
                visible(source)
            ),
            None => "say `singleton` if one key for all calls is meant".to_owned(),
        };
        Fault::new(0..source.len(), fact, remedy)
    }
}

/// What was meant as a placeholder in a template without one: `{}`, `{user}`, `users:user_id`.
fn meant(source: &str, scope: &Scope<'_>) -> Option<(Range<usize>, String)> {
    if let Some(open) = source.find('{')
        && let Some(length) = source[open..].find('}')
    {
        let inner = &source[open + 1..open + length];
        let name = if path(inner).is_some() { inner } else { scope.first()? };
        return Some((open..open + length + 1, format!("<{name}>")));
    }
    let mut at = 0;
    for segment in source.split(SEPARATORS) {
        if at > 0 && scope.knows(segment) {
            return Some((at..at + segment.len(), format!("<{segment}>")));
        }
        at += segment.len() + 1;
    }
    None
}

fn check_separators(source: &str, pieces: &[Piece], faults: &mut Vec<Fault>) {
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
        faults.push(Fault::new(
            left.at.start..right.at.end,
            format!(
                "no separator between `<{}>` and `<{}>`, so different values could render the same key",
                left.name(),
                right.name()
            ),
            format!("{} (`|` and `#` separate too)", write_instead(source, &gap, ":")),
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

struct Scan<'a> {
    source: &'a str,
    scope: &'a Scope<'a>,
    at: usize,
    pieces: Vec<Piece>,
    faults: Vec<Fault>,
}

impl Scan<'_> {
    fn run(&mut self) {
        while let Some(next) = self.rest().chars().next() {
            match next {
                '<' if self.rest().starts_with("<<") => self.text('<', 2),
                '<' => self.placeholder(),
                '>' if self.rest().starts_with(">>") => self.text('>', 2),
                '>' => self.stray(),
                _ if self.foreign() => {}
                '%' | '/' => self.reserved(next),
                _ if next.is_whitespace() || next.is_control() => self.reserved(next),
                _ => self.text(next, next.len_utf8()),
            }
        }
    }

    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn text(&mut self, c: char, length: usize) {
        if let Some(Piece::Text(text)) = self.pieces.last_mut() {
            text.push(c);
        } else {
            self.pieces.push(Piece::Text(c.into()));
        }
        self.at += length;
    }

    fn fault(&mut self, at: Range<usize>, fact: impl Into<String>, remedy: impl Into<String>) {
        self.faults.push(Fault::new(at, fact, remedy));
    }

    /// A placeholder that was read, or guessed beside a fault; then goes on behind `at`.
    fn hole(&mut self, path: Option<Vec<String>>, at: Range<usize>) {
        self.at = at.end;
        self.pieces.push(path.map_or(Piece::Broken, |path| Piece::Hole(Placeholder { path, at })));
    }

    fn placeholder(&mut self) {
        let inside = &self.source[self.at + 1..];
        match inside.find(['<', '>']) {
            Some(length) if inside[length..].starts_with('>') => {
                let at = self.at..self.at + length + 2;
                let inside = &inside[..length];
                let path = path(inside).or_else(|| self.bad_path(inside, &at));
                self.hole(path, at);
            }
            _ => self.unclosed(inside),
        }
    }

    /// Reports it; gives the path that was meant, where that shows.
    fn bad_path(&mut self, inside: &str, at: &Range<usize>) -> Option<Vec<String>> {
        let parameters = self.scope.list();
        if inside.trim().is_empty() {
            let fact = format!("`<{inside}>` names no parameter");
            let remedy = format!(
                "name one (the parameters are {parameters}), or write `<<` and `>>` for the characters themselves"
            );
            self.fault(at.clone(), fact, remedy);
            return None;
        }
        let fact = format!(
            "`<{}>` is not a parameter or a path of fields such as `<order.customer.id>`",
            visible(inside)
        );
        let guess = self.guess(inside);
        let remedy = match &guess {
            Some(path) => write_instead(self.source, at, &format!("<{path}>")),
            None => {
                format!("compute the value in the caller and pass it in (the parameters are {parameters})")
            }
        };
        self.fault(at.clone(), fact, remedy);
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
        if !name.is_empty() && inside[name.len()..].starts_with('<') && closes_twice(&inside[name.len()..]) {
            let length = inside.find('>').map_or(inside.len(), |end| end + 1);
            let within = at.start..at.start + 1 + length + 1;
            let fact = "a placeholder inside a placeholder".to_owned();
            self.fault(within.clone(), fact, "write them side by side, with a separator between them");
            return self.hole(None, within);
        }
        if !self.scope.knows(name) {
            let fact = "`<` opens a placeholder that is not closed";
            let remedy = format!(
                "close it with `>` behind a parameter (the parameters are {}), or write `<<` for a literal `<`",
                self.scope.list()
            );
            self.fault(at.clone(), fact, remedy);
            return self.hole(None, at);
        }
        let closing = if inside[name.len()..].starts_with('<') { ">:" } else { ">" };
        let fact = format!("the placeholder `<{name}` is not closed");
        let remedy = write_instead(self.source, &(at.end..at.end), closing);
        self.fault(at.clone(), fact, remedy);
        self.hole(path(name), at);
        if closing != ">" {
            self.pieces.push(Piece::Text(":".to_owned()));
        }
    }

    fn stray(&mut self) {
        let at = self.at..self.at + 1;
        let remedy = format!("{} for a literal `>`", write_instead(self.source, &at, ">>"));
        self.fault(at, "a stray `>` that closes no placeholder", remedy);
        self.text('>', 1);
    }

    /// A placeholder in another language's spelling, where it is sure to be one.
    fn foreign(&mut self) -> bool {
        let rest = self.rest();
        let (name, length) = match (printf(rest), braced(rest)) {
            (Some(length), _) => (self.scope.first(), length),
            (None, Some((name, length))) if self.scope.knows(name) => (Some(name), length),
            _ => return false,
        };
        let at = self.at..self.at + length;
        let fact =
            format!("`{}` is not a placeholder; one is written `<{}>`", &rest[..length], name.unwrap_or("…"));
        let path = name.filter(|_| printf(rest).is_none()).and_then(path);
        let lead = match self.pieces.last() {
            Some(Piece::Text(_)) => String::new(),
            Some(_) => ":".to_owned(),
            None => format!("{}:", self.scope.function),
        };
        let remedy = match name {
            Some(name) => write_instead(self.source, &at, &format!("{lead}<{name}>")),
            None => "write a parameter between `<` and `>`".to_owned(),
        };
        self.fault(at.clone(), fact, remedy);
        if !lead.is_empty() {
            self.pieces.push(Piece::Text(lead));
        }
        self.hole(path, at);
        true
    }

    fn reserved(&mut self, first: char) {
        let length = self.rest().find(|c| c != first).unwrap_or(self.rest().len());
        let at = self.at..self.at + length;
        let (fact, with) = match first {
            '%' => ("fixed text holds no `%`: it begins an escape in a key", ""),
            '/' => ("fixed text holds no `/`: it stands before the name of a phase", ":"),
            _ if first.is_whitespace() => ("fixed text holds no white space", "-"),
            _ => ("fixed text holds no control character", ""),
        };
        let between =
            matches!(self.pieces.last(), Some(Piece::Hole(_))) && self.source[at.end..].starts_with('<');
        let with = match with {
            _ if between => ":",
            _ if at.start == 0 || at.end == self.source.len() => "",
            with => with,
        };
        let remedy = write_instead(self.source, &at, with);
        self.fault(at.clone(), fact, remedy);
        self.at = at.end;
        if !with.is_empty() {
            self.pieces.push(Piece::Text(with.to_owned()));
        }
    }
}

/// `order.customer.id` as its segments; `None` for anything else.
fn path(written: &str) -> Option<Vec<String>> {
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
    let (kind, rest) = (tail[named..].chars().next()?, &tail[named..]);
    let ends = !rest[kind.len_utf8()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
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

#[cfg(test)]
mod tests;
