//! The options of a phase: the same words as the attribute's, where a phase has them.

use proc_macro2::Ident;
use syn::{Token, ext::IdentExt, parse::ParseStream, token};

use super::{
    each::each,
    probe::{self, Probe},
};
use crate::{
    args::{
        Arg, Args, Duration, FieldPath, Mode, OnError, OnStale,
        duration::duration,
        table::{Legal, set, twice},
        value::{on_error, policy, quoted, word},
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

/// The one table of options: it drives the parser and the messages, in the order of the docs.
const LEGAL: [Legal<Options>; 6] = [
    Legal::value("mode", r#""record_after""#, |options, name, i| {
        set(&mut options.mode, name, i, |i| word(i, "mode", &Mode::WORDS))
    }),
    Legal::value("stale_after", r#""90s""#, |options, name, i| {
        set(&mut options.stale_after, name, i, |i| duration(i, ""))
    }),
    Legal::value("on_stale", r#""retry""#, |options, name, i| {
        set(&mut options.on_stale, name, i, |i| policy(i, &probe::FORM))
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
