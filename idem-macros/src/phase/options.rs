//! The options of a phase: the same words as the attribute's, where a phase has them.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::{
    Expr, ExprClosure, ExprPath, LitStr, Path, ReturnType, Token,
    ext::IdentExt,
    parenthesized,
    parse::{ParseStream, Parser},
    token,
};

use super::body::parameterless;
use crate::{
    args::{
        Arg, Args, Duration, FieldPath, Mode, OnError, OnStale,
        duration::duration,
        table::{Legal, set, twice},
        value::{Asks, fields, on_error, policy, quoted, word},
    },
    errors::{did_you_mean, list},
};

#[derive(Default)]
pub(super) struct Options {
    pub(super) mode: Option<Arg<Mode>>,
    pub(super) stale_after: Option<Arg<Duration>>,
    pub(super) on_stale: Option<Arg<OnStale<Probe>>>,
    pub(super) on_error: Option<Arg<OnError>>,
    pub(super) tx: Option<Arg<Ident>>,
    pub(super) each: Option<Arg<FieldPath>>,
    given: Vec<String>,
}

/// What asks about the effect: a closure, or the path of a function, that is called without arguments.
#[derive(Clone)]
pub(super) enum Probe {
    Path(ExprPath),
    /// One whose answer's type is left to the phase.
    Async(ExprClosure),
    /// One that is not `async`, or says what it answers, or is half typed.
    Closure {
        is_async: bool,
        written: TokenStream,
    },
}

/// The one table of options: it drives the parser and the messages, in the order of the docs.
const LEGAL: [Legal<Options>; 6] = [
    Legal::value("mode", r#""record_after""#, |options, name, i| {
        set(&mut options.mode, name, i, |i| word(i, "mode", &Mode::WORDS))
    }),
    Legal::value("stale_after", r#""90s""#, |options, name, i| {
        set(&mut options.stale_after, name, i, |i| duration(i, ""))
    }),
    Legal::value("on_stale", r#""retry""#, |options, name, i| {
        set(&mut options.on_stale, name, i, |i| policy(i, &CLOSURE))
    }),
    Legal::value("on_error", r#""release""#, |options, name, i| {
        set(&mut options.on_error, name, i, on_error)
    }),
    Legal::value("tx", "tx", |options, name, i| set(&mut options.tx, name, i, variable)),
    Legal::value("each", "<line.id>", |options, name, i| set(&mut options.each, name, i, each)),
];

impl Options {
    /// Whether an option stands there, and not the body.
    pub(super) fn begins(input: ParseStream<'_>) -> bool {
        let Ok(name) = input.fork().call(Ident::parse_any) else { return false };
        let word = name.unraw().to_string();
        let is_option = LEGAL.iter().any(|legal| legal.name == word);
        (input.peek2(Token![=]) && !input.peek2(Token![==]) && !input.peek2(Token![=>]))
            || ((is_option || Args::has(&word)) && input.peek2(Token![,]))
            || (is_option && input.peek2(token::Paren))
    }

    pub(super) fn argument(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let name = input.call(Ident::parse_any)?;
        let word = name.unraw().to_string();
        let Some(legal) = LEGAL.iter().find(|legal| legal.name == word) else {
            return Err(syn::Error::new(name.span(), unknown(&word)));
        };
        if self.given.contains(&word) {
            return Err(twice(&name));
        }
        self.given.push(word);
        legal.argument(self, name.span(), input)
    }

    /// Whether the option was written at all, readable or not.
    pub(super) fn gave(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }

    /// The mode; `None` where it was written and could not be read.
    pub(super) fn mode(&self) -> Option<Mode> {
        match &self.mode {
            Some(mode) => Some(mode.value),
            None => (!self.gave("mode")).then_some(Mode::LockFirst),
        }
    }
}

fn unknown(word: &str) -> String {
    let names = || LEGAL.iter().map(|legal| legal.name);
    let legal = format!("the options of a phase are {}", list(names()));
    let near = did_you_mean(word, names(), "");
    of_the_job(word).map_or_else(
        || format!("unknown option `{word}`{near}\n{legal}"),
        |reason| format!("`{word}` is the job's: {reason}\nremove it; {legal}"),
    )
}

/// Why an argument of the attribute is none of a phase's.
fn of_the_job(word: &str) -> Option<&'static str> {
    Some(match word {
        "key" | "singleton" | "allow_volatile" | "allow_overlap" | "key_fn" => {
            "a phase's key is that of its job, with the phase's name behind it"
        }
        "ttl" | "allow_short_ttl" => "a phase expires with its job",
        "replay" => "the result of a phase is stored, for a repeat of the job to go on with",
        "fingerprint" => "what is different in a repeat is found before any phase runs",
        "heartbeat" | "max_takeovers" => "a phase runs under the claim of its job, and is taken over with it",
        "on_busy" | "wait_for" => "nobody else runs a phase while its job is claimed",
        "idem" => "a phase is recorded where its job is",
        "name" => "a phase goes by the job's label and by its own name",
        "crate" => "the macro finds the runtime by its own path",
        _ => return None,
    })
}

const CLOSURE: Asks<Probe> = Asks {
    form: "probe(async || …)",
    remedy: "write `on_stale = probe(async || …)`, with a closure that asks",
    read: asked,
};

/// The closure that asks.
fn asked(input: ParseStream<'_>) -> syn::Result<Probe> {
    const FACT: &str = "`probe` takes a closure, which is called without arguments and gives a `Probe<T>`";
    let inside;
    let parens = parenthesized!(inside in input);
    let refuse = |input: ParseStream<'_>, remedy: &str| {
        let error = input.error(format!("{FACT}\n{remedy}"));
        // What is left there would be an error of its own.
        input.parse::<TokenStream>()?;
        Err(error)
    };
    if inside.is_empty() {
        let fact = format!("{FACT}\nwrite it, such as `probe(async || find_charge(id).await)`");
        return Err(syn::Error::new(parens.span.join(), fact));
    }
    if let Some(path) = quoted::<Path>(&inside) {
        let path = path.to_token_stream().to_string().replace(char::is_whitespace, "");
        return refuse(&inside, &format!("write `probe({path})`, without quotes"));
    }
    let is_async = inside.peek(Token![async]);
    let remedy = match inside.fork().parse::<Expr>() {
        // A closure that is half typed is rustc's to tell of.
        Err(_) if parameterless(&inside) => {
            return Ok(Probe::Closure { is_async, written: inside.parse()? });
        }
        Ok(Expr::Path(path)) => return end(&inside, FACT).map(|()| Probe::Path(path)),
        Ok(Expr::Closure(closure)) if closure.inputs.is_empty() => {
            return end(&inside, FACT).map(|()| match closure.output {
                ReturnType::Default if is_async => Probe::Async(closure),
                _ => Probe::Closure { is_async, written: closure.into_token_stream() },
            });
        }
        Ok(Expr::Closure(_)) => "remove its parameters: it sees the variables of the job",
        Ok(Expr::Async(_)) => "write `probe(async || { … })`, with `||` in front of the block",
        Ok(Expr::Call(_) | Expr::MethodCall(_) | Expr::Await(_)) => {
            "write `probe(async || …)` around this, with its `.await`: it is called where a probe is needed"
        }
        _ => "write `probe(async || find_charge(id).await)`",
    };
    refuse(&inside, remedy)
}

/// Steps over what was read, and refuses what follows.
fn end(inside: ParseStream<'_>, fact: &str) -> syn::Result<()> {
    inside.parse::<Expr>()?;
    inside.parse::<Option<Token![,]>>()?;
    if inside.is_empty() {
        return Ok(());
    }
    let error = inside.error(format!("{fact}\nremove what stands behind it"));
    inside.parse::<TokenStream>()?;
    Err(error)
}

/// The variable that holds the transaction.
fn variable(input: ParseStream<'_>) -> syn::Result<Ident> {
    const FACT: &str = "`tx` is the name of the variable with the transaction";
    if let Some(name) = quoted::<Ident>(input) {
        return Err(input.error(format!("{FACT}: write `tx = {name}`")));
    }
    if input.peek(Token![&]) || input.peek(Token![*]) {
        return Err(input.error(format!("{FACT}: write its name alone, such as `tx = tx`")));
    }
    if !input.peek(syn::Ident) {
        return Err(input.error(format!("{FACT}, such as `tx = tx`")));
    }
    let name = input.fork();
    name.parse::<Ident>()?;
    if name.is_empty() || name.peek(Token![,]) {
        return input.parse();
    }
    Err(input.error(format!("{FACT}: bind this to one in front of the phase, such as `let tx = &mut …;`")))
}

/// `<line.id>`: what tells the elements apart, of which each gets a phase.
fn each(input: ParseStream<'_>) -> syn::Result<FieldPath> {
    const FACT: &str = "`each` names what tells one element from another, in brackets as in a key";
    if let Ok(literal) = input.fork().parse::<LitStr>() {
        let path = literal.value().trim_matches(['<', '>', '{', '}']).to_owned();
        let path = if path.parse::<TokenStream>().is_ok_and(is_path) { path } else { "line.id".to_owned() };
        return Err(input.error(format!("{FACT}: write `each = <{path}>`, without quotes")));
    }
    if !input.peek(Token![<]) {
        let Ok(written) = input.fork().parse::<Expr>() else {
            return Err(input.error(format!("{FACT}, such as `each = <line.id>`")));
        };
        let path = written.to_token_stream();
        let remedy = if is_path(path.clone()) {
            format!("write `each = <{}>`", path.to_string().replace(char::is_whitespace, ""))
        } else {
            "bind it to a variable in front of the phase, and write `each = <id>`".to_owned()
        };
        return Err(syn::Error::new_spanned(written, format!("{FACT}\n{remedy}")));
    }
    let open: Token![<] = input.parse()?;
    let mut path = TokenStream::new();
    while !(input.is_empty() || input.peek(Token![>]) || input.peek(Token![,])) {
        path.extend([input.parse::<proc_macro2::TokenTree>()?]);
    }
    if input.parse::<Token![>]>().is_err() {
        let path = path.to_string().replace(char::is_whitespace, "");
        return Err(syn::Error::new(
            open.span,
            format!("{FACT}: this one is not closed\nwrite `each = <{path}>`"),
        ));
    }
    if path.is_empty() {
        return Err(syn::Error::new(
            open.span,
            format!("{FACT}\nname a variable or its field, such as `each = <line.id>`"),
        ));
    }
    let wanted = format!(
        "{FACT}: a variable, or a path of fields\nbind anything else to a variable in front of the phase"
    );
    if !(input.is_empty() || input.peek(Token![,])) {
        let error = format!(
            "{FACT}: one variable, or one path of fields\nfor more than one make a tuple type of them with `#[derive(KeyPart)]`"
        );
        return Err(input.error(error));
    }
    (|path: ParseStream<'_>| fields(path, &wanted)).parse2(path)
}

fn is_path(tokens: TokenStream) -> bool {
    (|input: ParseStream<'_>| fields(input, "")).parse2(tokens).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{Args, LEGAL, of_the_job};

    #[test]
    fn every_option_stands_in_the_docs() {
        let docs = include_str!("../lib.rs");
        let (_, of_phases) = docs.split_once("fn idempotent").expect("the attribute");
        for legal in &LEGAL {
            assert!(
                of_phases.contains(&format!("/// | `{}`", legal.name)),
                "`{}` is undocumented",
                legal.name
            );
        }
    }

    #[test]
    fn every_argument_of_the_attribute_is_an_option_or_has_a_reason() {
        for name in Args::names() {
            let is_option = LEGAL.iter().any(|legal| legal.name == name);
            assert!(is_option != of_the_job(name).is_some(), "{name}");
        }
    }
}
