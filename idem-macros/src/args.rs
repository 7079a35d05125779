//! What the attribute says, argument by argument: each value with the span of its name and its own.

pub(crate) mod duration;
pub(crate) mod table;
pub(crate) mod value;

use proc_macro2::{Ident, Span, TokenStream};
use syn::{
    Expr, ExprPath, LitStr, Member, Path,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

pub(crate) use self::duration::Duration;
use self::{
    duration::duration,
    table::{Legal, set, skip_to_comma, twice},
    value::{
        count, extend, field_path, fingerprint, function_name, idem, job, key, krate, label, on_error,
        on_stale, parameter, truth, ttl, word,
    },
};
use crate::errors::{Errors, list, nearest};

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

/// A policy for every stale claim, or what asks about the effect: for a job, the path of a function.
#[derive(Clone)]
pub(crate) enum OnStale<P = ExprPath> {
    Alert,
    Retry,
    Probe(P),
}

/// A rule for every `Err`, or the path of a function that looks at it.
#[derive(Clone)]
pub(crate) enum OnError {
    Rule(ErrorRule),
    Classify(ExprPath),
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
    pub(crate) const WORDS: [(&'static str, Self); 3] = [
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

/// The one table of arguments: it drives the parser and the messages, in the order of the docs.
const LEGAL: [Legal<Args>; 21] = [
    Legal::value("key", r#""billing:<user_id>:<month>""#, |args, name, i| set(&mut args.key, name, i, key)),
    Legal::value("mode", r#""lock_first""#, |args, name, i| {
        set(&mut args.mode, name, i, |i| word(i, "mode", &Mode::WORDS))
    }),
    Legal::value("stale_after", r#""90s""#, |args, name, i| {
        set(&mut args.stale_after, name, i, |i| duration(i, ""))
    }),
    Legal::value("heartbeat", "false", |args, name, i| {
        set(&mut args.heartbeat, name, i, |i| truth(i, "heartbeat"))
    }),
    Legal::value("on_stale", r#""retry""#, |args, name, i| set(&mut args.on_stale, name, i, on_stale)),
    Legal::value("max_takeovers", "5", |args, name, i| {
        set(&mut args.max_takeovers, name, i, |i| count(i, "max_takeovers"))
    }),
    Legal::value("on_error", r#""release""#, |args, name, i| set(&mut args.on_error, name, i, on_error)),
    Legal::value("on_busy", r#""wait""#, |args, name, i| {
        let words = [("error", OnBusy::Error), ("wait", OnBusy::Wait)];
        set(&mut args.on_busy, name, i, |i| word(i, "on_busy", &words))
    }),
    Legal::value("wait_for", r#""10s""#, |args, name, i| {
        set(&mut args.wait_for, name, i, |i| duration(i, ""))
    }),
    Legal::value("ttl", r#""30d""#, |args, name, i| set(&mut args.ttl, name, i, ttl)),
    Legal::value("fingerprint", "(amount, plan.name)", |args, name, i| {
        set(&mut args.fingerprint, name, i, fingerprint)
    }),
    Legal::value("replay", "false", |args, name, i| set(&mut args.replay, name, i, |i| truth(i, "replay"))),
    Legal::value("tx", "connection", |args, name, i| set(&mut args.tx, name, i, parameter)),
    Legal::value("idem", "self.idem", |args, name, i| set(&mut args.idem, name, i, idem)),
    Legal::value("name", r#""billing.charge""#, |args, name, i| set(&mut args.label, name, i, label)),
    Legal::value("key_fn", "charge_key", |args, name, i| set(&mut args.key_fn, name, i, function_name)),
    Legal::flag("singleton", |args, name, i| set(&mut args.singleton, name, i, |_| Ok(()))),
    Legal::list("allow_volatile", "attempt", |args, _, i| {
        extend(&mut args.allow_volatile, i, "allow_volatile(attempt)", field_path)
    }),
    Legal::flag("allow_short_ttl", |args, name, i| set(&mut args.allow_short_ttl, name, i, |_| Ok(()))),
    Legal::list("allow_overlap", "other::job", |args, _, i| {
        extend(&mut args.allow_overlap, i, "allow_overlap(other::job)", job)
    }),
    Legal::value("crate", "crate::jobs", |args, name, i| set(&mut args.krate, name, i, krate)),
];

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

    /// The names of all arguments.
    #[cfg(test)]
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        LEGAL.iter().map(|legal| legal.name)
    }

    /// Whether the attribute has an argument of this name.
    pub(crate) fn has(name: &str) -> bool {
        LEGAL.iter().any(|legal| legal.name == name)
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
            if self.gave("key") {
                let fact = format!(
                    "arguments are named, and {text} has no name\nwrite one in front, such as `mode = {text}`, or remove it"
                );
                return Err(syn::Error::new(template.span(), fact));
            }
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
            let near = nearest(&word, names()).or_else(|| meant(&word));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(syn::Error::new(
                name.span(),
                format!("unknown argument `{word}`{near}\nthe arguments are {}", list(names())),
            ));
        };
        if self.gave(&word) && !legal.repeats() {
            return Err(twice(&name));
        }
        self.given.push(word);
        legal.argument(self, name.span(), input)
    }
}

/// What others call an argument, and whose value stands in its place.
fn meant(word: &str) -> Option<&'static str> {
    Some(match word {
        "lease" | "lock_timeout" | "timeout" | "visibility_timeout" => "stale_after",
        "expires" | "expiry" | "expires_after" | "expire_after" | "retention" | "unique_for" | "forever" => {
            "ttl"
        }
        "on_crash" | "retry" | "retries" | "alert" | "probe" => "on_stale",
        "on_conflict" | "wait" => "on_busy",
        "payload" | "hash" => "fingerprint",
        "id" | "idempotency_key" | "template" => "key",
        "db" | "database" | "store" | "client" | "pool" => "idem",
        "transaction" | "conn" | "connection" => "tx",
        "label" => "name",
        "lock_first" | "record_after" | "transactional" => "mode",
        "hold" | "release" | "by_mark" | "record" => "on_error",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{LEGAL, meant};

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

    #[test]
    fn what_others_call_an_argument_is_one_of_ours() {
        for word in [
            "lease",
            "expires",
            "retry",
            "wait",
            "hash",
            "id",
            "db",
            "conn",
            "label",
            "record_after",
            "hold",
            "forever",
        ] {
            let near = meant(word).expect("an argument");
            assert!(LEGAL.iter().any(|legal| legal.name == near), "{near}");
        }
    }
}
