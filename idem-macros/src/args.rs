//! What the attribute says, argument by argument: each value with the span of its name and its own.

use std::fmt::Display;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::{
    Expr, LitBool, LitInt, LitStr, Member, Path, Token,
    ext::IdentExt,
    parenthesized,
    parse::{Parse, ParseStream, Parser},
    token,
};

use crate::errors::{Errors, did_you_mean, list};

/// The longest duration there is: a hundred years.
const LONGEST: u64 = 36_500 * 24 * 60 * 60;

/// One argument: the value, where its name stands, where the value stands.
#[derive(Clone)]
pub(crate) struct Arg<T> {
    pub(crate) name: Span,
    pub(crate) span: Span,
    pub(crate) value: T,
}

/// The arguments of one `#[idempotent(…)]`. One that was faulty is absent here and known to [`gave`](Self::gave).
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) key: Option<Arg<LitStr>>,
    pub(crate) mode: Option<Arg<Mode>>,
    pub(crate) stale_after: Option<Arg<Duration>>,
    pub(crate) heartbeat: Option<Arg<bool>>,
    pub(crate) on_stale: Option<Arg<OnStale>>,
    pub(crate) max_takeovers: Option<Arg<u32>>,
    pub(crate) on_error: Option<Arg<OnError>>,
    pub(crate) on_busy: Option<Arg<OnBusy>>,
    pub(crate) wait_for: Option<Arg<Duration>>,
    pub(crate) ttl: Option<Arg<Ttl>>,
    pub(crate) fingerprint: Option<Arg<Vec<FieldPath>>>,
    pub(crate) replay: Option<Arg<bool>>,
    pub(crate) tx: Option<Arg<Ident>>,
    pub(crate) idem: Option<Arg<Expr>>,
    pub(crate) label: Option<Arg<LitStr>>,
    pub(crate) key_fn: Option<Arg<Ident>>,
    pub(crate) singleton: Option<Arg<()>>,
    pub(crate) allow_volatile: Vec<FieldPath>,
    pub(crate) allow_short_ttl: Option<Arg<()>>,
    pub(crate) allow_overlap: Vec<Path>,
    pub(crate) krate: Option<Arg<Path>>,
    given: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    LockFirst,
    RecordAfter,
    Transactional,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnStale {
    Alert,
    Retry,
}

/// A rule for every `Err`, or the path of a function that looks at it.
#[derive(Clone)]
pub(crate) enum OnError {
    Rule(ErrorRule),
    Classify(Path),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorRule {
    Hold,
    Release,
    ByMark,
    Record,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnBusy {
    Error,
    Wait,
}

/// A duration as it was written, and in seconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Duration {
    pub(crate) written: String,
    pub(crate) seconds: u64,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Ttl {
    For(Duration),
    Forever,
}

/// `amount.cents`: a parameter, or a path of fields from one.
#[derive(Clone)]
pub(crate) struct FieldPath {
    pub(crate) root: Ident,
    pub(crate) fields: Vec<Member>,
}

impl FieldPath {
    /// The path as a template would write it.
    pub(crate) fn name(&self) -> String {
        let mut name = self.root.unraw().to_string();
        for field in &self.fields {
            name.push('.');
            match field {
                Member::Named(field) => name.push_str(&field.unraw().to_string()),
                Member::Unnamed(index) => name.push_str(&index.index.to_string()),
            }
        }
        name
    }
}

impl Mode {
    const WORDS: [(&'static str, Self); 3] = [
        ("lock_first", Self::LockFirst),
        ("record_after", Self::RecordAfter),
        ("transactional", Self::Transactional),
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::LockFirst => "lock_first",
            Self::RecordAfter => "record_after",
            Self::Transactional => "transactional",
        }
    }
}

/// A legal argument: its name, how it is written, what reads its value.
struct Legal {
    name: &'static str,
    shape: Shape,
    read: Read,
}

#[derive(Clone, Copy)]
enum Shape {
    /// `name = value`, with an example of the value.
    Value(&'static str),
    /// `name(element, …)`, with an example of an element; may be repeated.
    List(&'static str),
    /// `name` alone.
    Flag,
}

type Read = fn(&mut Args, Span, ParseStream<'_>) -> syn::Result<()>;

/// The one table of arguments: it drives the parser and the messages, in the order of the docs.
const LEGAL: [Legal; 21] = [
    Legal::value("key", r#""billing:<user_id>:<month>""#, |args, name, i| set(&mut args.key, name, i, key)),
    Legal::value("mode", r#""lock_first""#, |args, name, i| {
        set(&mut args.mode, name, i, |i| word(i, "mode", &Mode::WORDS))
    }),
    Legal::value("stale_after", r#""90s""#, |args, name, i| set(&mut args.stale_after, name, i, duration)),
    Legal::value("heartbeat", "false", |args, name, i| set(&mut args.heartbeat, name, i, truth)),
    Legal::value("on_stale", r#""retry""#, |args, name, i| {
        let words = [("alert", OnStale::Alert), ("retry", OnStale::Retry)];
        set(&mut args.on_stale, name, i, |i| word(i, "on_stale", &words))
    }),
    Legal::value("max_takeovers", "5", |args, name, i| set(&mut args.max_takeovers, name, i, count)),
    Legal::value("on_error", r#""release""#, |args, name, i| set(&mut args.on_error, name, i, on_error)),
    Legal::value("on_busy", r#""wait""#, |args, name, i| {
        let words = [("error", OnBusy::Error), ("wait", OnBusy::Wait)];
        set(&mut args.on_busy, name, i, |i| word(i, "on_busy", &words))
    }),
    Legal::value("wait_for", r#""10s""#, |args, name, i| set(&mut args.wait_for, name, i, duration)),
    Legal::value("ttl", r#""30d""#, |args, name, i| set(&mut args.ttl, name, i, ttl)),
    Legal::value("fingerprint", "(amount, plan.name)", |args, name, i| {
        set(&mut args.fingerprint, name, i, fingerprint)
    }),
    Legal::value("replay", "false", |args, name, i| set(&mut args.replay, name, i, truth)),
    Legal::value("tx", "connection", |args, name, i| set(&mut args.tx, name, i, parameter)),
    Legal::value("idem", "self.idem", |args, name, i| set(&mut args.idem, name, i, Expr::parse)),
    Legal::value("name", r#""billing.charge""#, |args, name, i| set(&mut args.label, name, i, label)),
    Legal::value("key_fn", "charge_key", |args, name, i| set(&mut args.key_fn, name, i, function_name)),
    Legal::flag("singleton", |args, name, i| set(&mut args.singleton, name, i, |_| Ok(()))),
    Legal::list("allow_volatile", "attempt", |args, _, i| extend(&mut args.allow_volatile, i, field_path)),
    Legal::flag("allow_short_ttl", |args, name, i| set(&mut args.allow_short_ttl, name, i, |_| Ok(()))),
    Legal::list("allow_overlap", "other::job", |args, _, i| {
        extend(&mut args.allow_overlap, i, Path::parse_mod_style)
    }),
    Legal::value("crate", "crate::jobs", |args, name, i| set(&mut args.krate, name, i, krate)),
];

impl Legal {
    const fn value(name: &'static str, example: &'static str, read: Read) -> Self {
        Self { name, shape: Shape::Value(example), read }
    }

    const fn list(name: &'static str, example: &'static str, read: Read) -> Self {
        Self { name, shape: Shape::List(example), read }
    }

    const fn flag(name: &'static str, read: Read) -> Self {
        Self { name, shape: Shape::Flag, read }
    }

    /// How the argument is written, as an example.
    fn form(&self) -> String {
        match self.shape {
            Shape::Value(example) => format!("{} = {example}", self.name),
            Shape::List(example) => format!("{}({example})", self.name),
            Shape::Flag => self.name.to_owned(),
        }
    }

    /// Steps over the `=` of a value; refuses what is not of the argument's shape.
    fn enter(&self, name: Span, input: ParseStream<'_>) -> syn::Result<()> {
        let ends = input.is_empty() || input.peek(Token![,]);
        let fits = match self.shape {
            Shape::Value(_) => input.parse::<Option<Token![=]>>()?.is_some() && !input.is_empty(),
            Shape::List(_) => input.peek(token::Paren),
            Shape::Flag => ends,
        };
        let form = self.form();
        let message = match self.shape {
            _ if fits => return Ok(()),
            Shape::Flag => format!("`{form}` stands alone: it takes no value"),
            _ => format!("`{}` is written `{form}`", self.name),
        };
        Err(syn::Error::new(name, message))
    }
}

impl Args {
    /// Reads what can be read; each faulty argument is one error and hinders no other.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::default();
        let read = |input: ParseStream<'_>| {
            while !input.is_empty() {
                let read = args.argument(input);
                errors.take(read);
                skip_to_comma(input);
            }
            Ok(())
        };
        let end = read.parse2(tokens);
        errors.take(end);
        args
    }

    /// Whether the argument was written at all, readable or not.
    pub(crate) fn gave(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }

    /// The mode; `None` where it was written and could not be read.
    pub(crate) fn mode(&self) -> Option<Mode> {
        match &self.mode {
            Some(mode) => Some(mode.value),
            None => (!self.gave("mode")).then_some(Mode::LockFirst),
        }
    }

    /// Whether a call waits for a busy key.
    pub(crate) fn waits(&self) -> bool {
        match &self.on_busy {
            Some(busy) => busy.value == OnBusy::Wait,
            None => self.mode() == Some(Mode::Transactional),
        }
    }

    fn argument(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        if let Ok(template) = input.fork().parse::<LitStr>() {
            let text = template.token();
            // The key is not missing, only its name is.
            self.given.push("key".to_owned());
            return Err(syn::Error::new(
                template.span(),
                format!("arguments are named: write `key = {text}`"),
            ));
        }
        let name = Ident::parse_any(input).map_err(|error| {
            syn::Error::new(error.span(), format!("expected an argument, such as `{}`", LEGAL[0].form()))
        })?;
        let word = name.unraw().to_string();
        let Some(legal) = LEGAL.iter().find(|legal| legal.name == word) else {
            let names = || LEGAL.iter().map(|legal| legal.name);
            let near = did_you_mean(&word, names(), "");
            return Err(syn::Error::new(
                name.span(),
                format!("unknown argument `{word}`{near}\nthe arguments are {}", list(names())),
            ));
        };
        if self.gave(&word) && !matches!(legal.shape, Shape::List(_)) {
            return Err(syn::Error::new(name.span(), format!("`{word}` is given twice; keep one of them")));
        }
        self.given.push(word);
        legal.enter(name.span(), input)?;
        (legal.read)(self, name.span(), input)?;
        if input.is_empty() || input.peek(Token![,]) {
            return Ok(());
        }
        Err(input.error(format!("expected `,`: `{}` is written `{}`", legal.name, legal.form())))
    }
}

fn skip_to_comma(input: ParseStream<'_>) {
    while let Ok(token) = input.parse::<TokenTree>() {
        if matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',') {
            break;
        }
    }
}

fn set<T>(
    slot: &mut Option<Arg<T>>,
    name: Span,
    input: ParseStream<'_>,
    read: impl FnOnce(ParseStream<'_>) -> syn::Result<T>,
) -> syn::Result<()> {
    let span = if input.is_empty() || input.peek(Token![,]) { name } else { input.span() };
    *slot = Some(Arg { name, span, value: read(input)? });
    Ok(())
}

fn extend<T>(
    list: &mut Vec<T>,
    input: ParseStream<'_>,
    read: fn(ParseStream<'_>) -> syn::Result<T>,
) -> syn::Result<()> {
    let inside;
    let parens = parenthesized!(inside in input);
    if inside.is_empty() {
        return Err(syn::Error::new(parens.span.join(), "nothing stands between the parentheses"));
    }
    list.extend(inside.parse_terminated(read, Token![,])?);
    Ok(())
}

fn string(input: ParseStream<'_>, otherwise: impl Display) -> syn::Result<LitStr> {
    if input.peek(LitStr) { input.parse() } else { Err(input.error(otherwise)) }
}

fn key(input: ParseStream<'_>) -> syn::Result<LitStr> {
    string(input, "the key is a string literal: an attribute sees no constants and expands no `concat!`")
}

fn word<T: Copy>(input: ParseStream<'_>, name: &str, words: &[(&str, T)]) -> syn::Result<T> {
    let quoted: Vec<_> = words.iter().map(|(word, _)| format!("`\"{word}\"`")).collect();
    let legal = quoted
        .split_last()
        .map_or_else(String::new, |(last, others)| format!("{} or {last}", others.join(", ")));
    let literal = string(input, format!("`{name}` is {legal}"))?;
    let given = literal.value();
    words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or_else(|| {
        let near = did_you_mean(&given, words.iter().map(|(word, _)| *word), "");
        syn::Error::new(literal.span(), format!("`{name}` cannot be `{given}`{near}\nit is {legal}"))
    })
}

fn on_error(input: ParseStream<'_>) -> syn::Result<OnError> {
    if input.peek(LitStr) {
        let words = [
            ("hold", ErrorRule::Hold),
            ("release", ErrorRule::Release),
            ("by_mark", ErrorRule::ByMark),
            ("record", ErrorRule::Record),
        ];
        return word(input, "on_error", &words).map(OnError::Rule);
    }
    let otherwise = "`on_error` is `\"hold\"`, `\"release\"`, `\"by_mark\"`, `\"record\"` \
                     or the path of a `fn(&E) -> OnError`";
    let error = input.error(otherwise);
    input.parse().map(OnError::Classify).map_err(|_| error)
}

fn truth(input: ParseStream<'_>) -> syn::Result<bool> {
    if !input.peek(LitBool) {
        return Err(input.error("expected `true` or `false`"));
    }
    input.parse::<LitBool>().map(|literal| literal.value)
}

fn count(input: ParseStream<'_>) -> syn::Result<u32> {
    if !input.peek(LitInt) {
        return Err(input.error("expected a number, such as `5`"));
    }
    input.parse::<LitInt>()?.base10_parse()
}

fn duration(input: ParseStream<'_>) -> syn::Result<Duration> {
    if let Ok(number) = input.fork().parse::<LitInt>() {
        let unit = if number.suffix().is_empty() { "s" } else { number.suffix() };
        let written = format!("{}{unit}", number.base10_digits());
        let example = if seconds(&written).is_ok() { written } else { "90s".to_owned() };
        return Err(syn::Error::new(
            number.span(),
            format!("a duration is a string with a unit: write `\"{example}\"`"),
        ));
    }
    let literal = string(input, "a duration is a string such as `\"90s\"`, `\"15m\"`, `\"2h\"` or `\"1d\"`")?;
    let written = literal.value();
    match seconds(&written) {
        Ok(seconds) => Ok(Duration { written, seconds }),
        Err(fault) => Err(syn::Error::new(literal.span(), fault)),
    }
}

fn ttl(input: ParseStream<'_>) -> syn::Result<Ttl> {
    match input.fork().parse::<LitStr>() {
        Ok(literal) if literal.value() == "forever" => input.parse::<LitStr>().map(|_| Ttl::Forever),
        _ => duration(input).map(Ttl::For).map_err(|error| {
            syn::Error::new(
                error.span(),
                format!("{error}; to keep completed keys for good, write `\"forever\"`"),
            )
        }),
    }
}

/// The seconds of `"90s"`, `"15m"`, `"2h"`, `"1d"`.
fn seconds(written: &str) -> Result<u64, String> {
    let digits = written.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &written[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => 0,
    };
    if unit == 0 || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "`{written}` is not a duration: write a whole number of `s`, `m`, `h` or `d`, such as `90s` or `2h`"
        ));
    }
    match digits.parse::<u64>().ok().and_then(|count| count.checked_mul(unit)) {
        Some(0) => Err(format!("`{written}` is shorter than `1s`, the shortest duration there is")),
        Some(seconds) if seconds <= LONGEST => Ok(seconds),
        _ => Err(format!("`{written}` is longer than `36500d`, the longest duration there is")),
    }
}

fn fingerprint(input: ParseStream<'_>) -> syn::Result<Vec<FieldPath>> {
    if !input.peek(token::Paren) {
        return Err(input.error("the values of a fingerprint stand in parentheses: `fingerprint = (amount)`"));
    }
    let mut paths = Vec::new();
    extend(&mut paths, input, field_path)?;
    Ok(paths)
}

/// `ident(.field)*`, read as an expression because `t.0.1` is a number to the lexer.
fn field_path(input: ParseStream<'_>) -> syn::Result<FieldPath> {
    let written: Expr = input.parse()?;
    let refused = || {
        syn::Error::new_spanned(
            &written,
            "expected a parameter or a path of fields, such as `amount` or `order.total.cents`",
        )
    };
    let mut fields = Vec::new();
    let mut at = &written;
    while let Expr::Field(field) = at {
        fields.push(field.member.clone());
        at = &field.base;
    }
    fields.reverse();
    let Expr::Path(path) = at else { return Err(refused()) };
    let root = path.path.get_ident().filter(|_| path.qself.is_none()).ok_or_else(refused)?;
    Ok(FieldPath { root: root.clone(), fields })
}

fn label(input: ParseStream<'_>) -> syn::Result<LitStr> {
    let literal = string(input, "`name` is a string: the job's label in rows, logs and metrics")?;
    if literal.value().trim().is_empty() || literal.value().chars().any(char::is_control) {
        return Err(syn::Error::new(literal.span(), "`name` is one line of text that is not empty"));
    }
    Ok(literal)
}

fn function_name(input: ParseStream<'_>) -> syn::Result<Ident> {
    if let Ok(quoted) = input.fork().parse::<LitStr>() {
        return Err(input.error(format!(
            "`key_fn` is the name of a function to make: write `key_fn = {}`",
            quoted.value()
        )));
    }
    if !input.peek(syn::Ident) {
        return Err(input.error("`key_fn` is the name of a function to make, such as `charge_key`"));
    }
    input.parse()
}

fn parameter(input: ParseStream<'_>) -> syn::Result<Ident> {
    if let Ok(quoted) = input.fork().parse::<LitStr>() {
        return Err(input.error(format!("`tx` is the name of a parameter: write `tx = {}`", quoted.value())));
    }
    if !input.peek(syn::Ident) {
        return Err(input
            .error("`tx` is the name of the parameter with the caller's transaction, such as `connection`"));
    }
    input.parse()
}

fn krate(input: ParseStream<'_>) -> syn::Result<Path> {
    if let Ok(quoted) = input.fork().parse::<LitStr>() {
        return Err(input.error(format!("`crate` is a path: write `crate = {}`", quoted.value())));
    }
    Path::parse_mod_style(input)
}

#[cfg(test)]
mod tests {
    use super::{LEGAL, seconds};

    #[test]
    fn durations_are_read_and_refused() {
        for (written, expected) in
            [("1s", 1), ("90s", 90), ("15m", 900), ("2h", 7_200), ("36500d", 3_153_600_000)]
        {
            assert_eq!(seconds(written), Ok(expected), "{written}");
        }
        let bad = [
            "",
            "s",
            "90",
            "0s",
            "00d",
            "999ms",
            "1h30m",
            "-1s",
            "+1s",
            "1.5h",
            "1 h",
            " 1h",
            "1H",
            "36501d",
            "99999999999999999999d",
            "１s",
        ];
        for written in bad {
            assert!(seconds(written).is_err(), "{written}");
        }
    }

    #[test]
    fn every_argument_stands_in_the_docs() {
        let docs = include_str!("lib.rs");
        for legal in &LEGAL {
            assert!(
                docs.contains(&format!("//! | `{}", legal.name))
                    || docs.contains(&format!("/// | `{}", legal.name)),
                "`{}` is undocumented",
                legal.name
            );
        }
    }
}
