//! The values of the arguments, each with the words for what it is not.

use std::fmt::Display;

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::{
    Expr, ExprCall, ExprPath, LitBool, LitInt, LitStr, Path, Token,
    ext::IdentExt,
    parenthesized,
    parse::{Parse, ParseStream},
    token,
};

use super::{ErrorRule, FieldPath, OnError, OnStale, Ttl, duration::duration};
use crate::errors::did_you_mean;

/// Reads a list in parentheses; `form` is how the whole argument is written.
pub(crate) fn extend<T>(
    list: &mut Vec<T>,
    input: ParseStream<'_>,
    form: &str,
    read: fn(ParseStream<'_>) -> syn::Result<T>,
) -> syn::Result<()> {
    let inside;
    let parens = parenthesized!(inside in input);
    if inside.is_empty() {
        let fact = format!("nothing stands between the parentheses\nwrite `{form}`, or remove it");
        return Err(syn::Error::new(parens.span.join(), fact));
    }
    let read = inside.parse_terminated(read, Token![,]);
    if read.is_err() {
        // What is left there would be an error of its own.
        inside.parse::<TokenStream>()?;
    }
    list.extend(read?);
    Ok(())
}

pub(crate) fn string(input: ParseStream<'_>, otherwise: impl Display) -> syn::Result<LitStr> {
    if !input.peek(LitStr) {
        return Err(input.error(otherwise));
    }
    let literal: LitStr = input.parse()?;
    match literal.suffix() {
        "" => Ok(literal),
        suffix => Err(syn::Error::new(literal.span(), format!("a string has no suffix: remove `{suffix}`"))),
    }
}

pub(crate) fn key(input: ParseStream<'_>) -> syn::Result<LitStr> {
    string(input, "the key is a string literal: an attribute sees no constants and expands no `concat!`")
}

pub(crate) fn word<T: Copy>(input: ParseStream<'_>, name: &str, words: &[(&str, T)]) -> syn::Result<T> {
    let quoted: Vec<_> = words.iter().map(|(word, _)| format!("`\"{word}\"`")).collect();
    let legal = quoted
        .split_last()
        .map_or_else(String::new, |(last, others)| format!("{} or {last}", others.join(", ")));
    if let Ok(bare) = input.fork().call(Ident::parse_any)
        && words.iter().any(|(word, _)| bare == word)
    {
        return Err(input.error(format!("`{name}` is a string: write `{name} = \"{bare}\"`")));
    }
    let literal = string(input, format!("`{name}` is {legal}"))?;
    let given = literal.value();
    words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or_else(|| {
        let near = did_you_mean(&given, words.iter().map(|(word, _)| *word), "");
        syn::Error::new(literal.span(), format!("`{name}` cannot be `{given}`{near}\nit is {legal}"))
    })
}

pub(crate) fn on_error(input: ParseStream<'_>) -> syn::Result<OnError> {
    if input.peek(LitStr) {
        let words = [
            ("hold", ErrorRule::Hold),
            ("release", ErrorRule::Release),
            ("by_mark", ErrorRule::ByMark),
            ("record", ErrorRule::Record),
        ];
        let path = quoted::<Path>(input).filter(|path| !words.iter().any(|(word, _)| path.is_ident(word)));
        return word(input, "on_error", &words).map(OnError::Rule).map_err(|error| match path {
            Some(_) => {
                let fact = format!("{error}, or the path of a `fn(&E) -> OnError`, without quotes");
                syn::Error::new(error.span(), fact)
            }
            None => error,
        });
    }
    if let Ok(ExprPath { path, .. }) = input.fork().parse()
        && let [.., of, rule] =
            &path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>()[..]
        && of == "OnError"
    {
        let word = rule.to_lowercase();
        return Err(input.error(format!("a rule for every error is a string: write `on_error = \"{word}\"`")));
    }
    let otherwise = "`on_error` is `\"hold\"`, `\"release\"`, `\"by_mark\"`, `\"record\"` \
                     or the path of a `fn(&E) -> OnError`";
    let error = input.error(otherwise);
    let path: ExprPath = input.parse().map_err(|_| error)?;
    if input.peek(token::Paren) {
        return Err(input.error(
            "`on_error` is the path of a function, which is called with each error: remove the parentheses",
        ));
    }
    Ok(OnError::Classify(path))
}

/// How a probe is written, and what reads what stands in its parentheses.
pub(crate) struct Asks<P> {
    /// The value of `on_stale`.
    pub(crate) form: &'static str,
    /// The whole argument, for one who did not write a probe.
    pub(crate) remedy: &'static str,
    pub(crate) read: fn(ParseStream<'_>) -> syn::Result<P>,
}

const PATH: Asks<ExprPath> = Asks {
    form: "probe(path)",
    remedy: "write `on_stale = probe(was_charged)`, with the path of the function that asks",
    read: asked,
};

/// A policy as a string, or `probe(path)`.
pub(crate) fn on_stale(input: ParseStream<'_>) -> syn::Result<OnStale> {
    policy(input, &PATH)
}

/// A policy as a string, or a probe.
pub(crate) fn policy<P>(input: ParseStream<'_>, asks: &Asks<P>) -> syn::Result<OnStale<P>> {
    let Asks { form, remedy, read } = asks;
    if let Ok(literal) = input.fork().parse::<LitStr>()
        && literal.value().starts_with("probe")
    {
        let unquoted = quoted::<ExprCall>(input).is_some_and(|call| call.args.len() == 1);
        let remedy = if unquoted {
            format!("write `on_stale = {}`, without quotes", literal.value())
        } else {
            (*remedy).to_owned()
        };
        return Err(input.error(format!("a probe is not a string: {remedy}")));
    }
    let bare = input.fork().parse::<ExprPath>().map(|path| path.path);
    let is_word = |path: &Path| ["alert", "retry"].iter().any(|word| path.is_ident(word));
    match bare {
        Ok(path) if path.is_ident("probe") => {
            input.parse::<ExprPath>()?;
            if input.peek(token::Paren) {
                return read(input).map(OnStale::Probe);
            }
            Err(syn::Error::new_spanned(path, format!("`probe` does not say whom to ask\n{remedy}")))
        }
        Ok(path) if !is_word(&path) => {
            let path = path.to_token_stream().to_string().replace(char::is_whitespace, "");
            let fact = format!("`on_stale` is `\"alert\"`, `\"retry\"` or `{form}`");
            Err(input.error(format!("{fact}: if `{path}` asks, write `on_stale = probe({path})`")))
        }
        _ => {
            let words = [("alert", false), ("retry", true)];
            let retries = word(input, "on_stale", &words)
                .map_err(|error| syn::Error::new(error.span(), format!("{error}, or `{form}`")))?;
            Ok(if retries { OnStale::Retry } else { OnStale::Alert })
        }
    }
}

/// The path of the function that asks.
fn asked(input: ParseStream<'_>) -> syn::Result<ExprPath> {
    const FACT: &str = "`probe` takes the path of a function, which is called with what the key names";
    let inside;
    let parens = parenthesized!(inside in input);
    let refuse = |input: ParseStream<'_>, remedy: &str| {
        let error = input.error(format!("{FACT}\n{remedy}"));
        // What is left there would be an error of its own.
        input.parse::<TokenStream>()?;
        Err(error)
    };
    if inside.is_empty() {
        let fact = format!("{FACT}\nname it, such as `probe(was_charged)`");
        return Err(syn::Error::new(parens.span.join(), fact));
    }
    if let Some(path) = quoted::<Path>(&inside) {
        let path = path.to_token_stream().to_string().replace(char::is_whitespace, "");
        return refuse(&inside, &format!("write `probe({path})`, without quotes"));
    }
    if inside.peek(Token![|]) || inside.peek(Token![async]) || inside.peek(Token![move]) {
        return refuse(&inside, "make a function of this closure, and name that");
    }
    let Ok(path) = inside.fork().parse::<ExprPath>() else {
        return refuse(&inside, "write a path alone, such as `probe(was_charged)`");
    };
    inside.parse::<ExprPath>()?;
    if inside.peek(token::Paren) {
        return refuse(&inside, "remove these parentheses");
    }
    inside.parse::<Option<Token![,]>>()?;
    if !inside.is_empty() {
        return refuse(&inside, "one function asks: call the other from it");
    }
    Ok(path)
}

/// What a string holds, where it was quoted by mistake.
pub(crate) fn quoted<T: Parse>(input: ParseStream<'_>) -> Option<T> {
    input.fork().parse::<LitStr>().ok()?.parse().ok()
}

pub(crate) fn truth(input: ParseStream<'_>, name: &str) -> syn::Result<bool> {
    if input.peek(LitBool) {
        return input.parse::<LitBool>().map(|literal| literal.value);
    }
    let quoted = input.fork().parse::<LitStr>().map(|literal| literal.value().to_lowercase());
    let meant = match quoted.as_deref() {
        Ok("true" | "yes" | "on" | "1") => Some(true),
        Ok("false" | "no" | "off" | "0" | "never") => Some(false),
        _ => None,
    };
    let remedy = meant.map_or_else(String::new, |meant| format!(": write `{name} = {meant}`"));
    Err(input.error(format!("`{name}` is `true` or `false`{remedy}")))
}

pub(crate) fn count(input: ParseStream<'_>, name: &str) -> syn::Result<u32> {
    if input.peek(LitInt) {
        let number = input.parse::<LitInt>()?;
        let count = number.base10_parse().ok().filter(|_| number.suffix().is_empty());
        return count.ok_or_else(|| {
            let fact = format!("`{name}` is a whole number from 0 to {}, without a suffix", u32::MAX);
            syn::Error::new(number.span(), fact)
        });
    }
    let quoted = input.fork().parse::<LitStr>().ok().and_then(|literal| literal.value().parse::<u32>().ok());
    let remedy =
        quoted.map_or_else(|| ", such as `5`".to_owned(), |number| format!(": write `{name} = {number}`"));
    Err(input.error(format!("`{name}` is a whole number{remedy}")))
}

pub(crate) fn ttl(input: ParseStream<'_>) -> syn::Result<Ttl> {
    const FOREVER: &str = "; to keep completed keys for good, write `\"forever\"`";
    match input.fork().parse::<LitStr>() {
        Ok(literal) if literal.value() == "forever" => input.parse::<LitStr>().map(|_| Ttl::Forever),
        _ => duration(input, FOREVER).map(Ttl::For),
    }
}

pub(crate) fn fingerprint(input: ParseStream<'_>) -> syn::Result<Vec<FieldPath>> {
    if !input.peek(token::Paren) {
        return Err(input.error("the values of a fingerprint stand in parentheses: `fingerprint = (amount)`"));
    }
    let mut paths = Vec::new();
    extend(&mut paths, input, "fingerprint = (amount, plan.name)", field_path)?;
    Ok(paths)
}

/// `ident(.field)*` of a parameter.
pub(crate) fn field_path(input: ParseStream<'_>) -> syn::Result<FieldPath> {
    const WANTED: &str = "expected a parameter or a path of fields, such as `amount` or `order.total.cents`";
    if input.peek(Token![<]) {
        return Err(input.error(format!("{WANTED}; the brackets are for the key alone")));
    }
    if let Some(path) = input.fork().parse::<LitStr>().ok().filter(|path| path.parse_with(field_path).is_ok())
    {
        return Err(input.error(format!("{WANTED}: write `{}`", path.value())));
    }
    fields(input, WANTED)
}

/// `ident(.field)*`, read as an expression because `t.0.1` is a number to the lexer.
pub(crate) fn fields(input: ParseStream<'_>, wanted: &str) -> syn::Result<FieldPath> {
    let error = input.error(wanted);
    let written: Expr = input.parse().map_err(|_| error)?;
    let refused = || syn::Error::new_spanned(&written, wanted);
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

pub(crate) fn label(input: ParseStream<'_>) -> syn::Result<LitStr> {
    let literal = string(input, "`name` is a string: the job's label in rows, logs and metrics")?;
    if literal.value().trim().is_empty() || literal.value().chars().any(char::is_control) {
        return Err(syn::Error::new(literal.span(), "`name` is one line of text that is not empty"));
    }
    Ok(literal)
}

pub(crate) fn function_name(input: ParseStream<'_>) -> syn::Result<Ident> {
    if let Some(name) = quoted::<Ident>(input) {
        return Err(
            input.error(format!("`key_fn` is the name of a function to make: write `key_fn = {name}`"))
        );
    }
    if !input.peek(syn::Ident) {
        return Err(input.error("`key_fn` is the name of a function to make, such as `charge_key`"));
    }
    input.parse()
}

pub(crate) fn parameter(input: ParseStream<'_>) -> syn::Result<Ident> {
    if let Some(name) = quoted::<Ident>(input) {
        return Err(input.error(format!("`tx` is the name of a parameter: write `tx = {name}`")));
    }
    if !input.peek(syn::Ident) {
        return Err(input
            .error("`tx` is the name of the parameter with the caller's transaction, such as `connection`"));
    }
    input.parse()
}

pub(crate) fn krate(input: ParseStream<'_>) -> syn::Result<Path> {
    path(input, "`crate` is a path", |path| format!("crate = {path}"), "crate::jobs")
}

/// The handle, an expression; a quoted one is another language's habit.
pub(crate) fn idem(input: ParseStream<'_>) -> syn::Result<Expr> {
    if let Ok(literal) = input.fork().parse::<LitStr>() {
        let expression = literal.value();
        let remedy = if quoted::<Expr>(input).is_some() {
            format!(": write `idem = {expression}`")
        } else {
            ", such as `self.idem`".to_owned()
        };
        return Err(input.error(format!("`idem` is an expression that gives `&Idem`{remedy}")));
    }
    input.parse()
}

/// The path of another job.
pub(crate) fn job(input: ParseStream<'_>) -> syn::Result<Path> {
    let path =
        path(input, "a job is named by its path", |path| format!("allow_overlap({path})"), "other::job")?;
    match path.segments.last() {
        // As a path of no name it would stand for every job.
        Some(last) if ["crate", "self", "super", "Self"].iter().any(|word| last.ident == word) => {
            Err(syn::Error::new(
                last.ident.span(),
                format!("`{}` names no job\nwrite the path of one, such as `other::job`", last.ident),
            ))
        }
        _ => Ok(path),
    }
}

/// A path without arguments; `form` is how the whole is written with one that was quoted.
fn path(input: ParseStream<'_>, fact: &str, form: fn(&str) -> String, example: &str) -> syn::Result<Path> {
    if let Ok(literal) = input.fork().parse::<LitStr>()
        && literal.parse_with(Path::parse_mod_style).is_ok()
    {
        return Err(input.error(format!("{fact}: write `{}`", form(&literal.value()))));
    }
    let error = input.error(format!("{fact}, such as `{example}`"));
    Path::parse_mod_style(input).map_err(|_| error)
}
