//! The key against the function: what its placeholders name, and whether they name the right thing for long enough.

use proc_macro2::{Ident, Span};
use syn::{Index, LitStr, Member, ext::IdentExt};

use super::{Borrow, DAY, DEFAULT_TTL, HOUR, shape::check_nameable};
use crate::{
    args::{Arg, Args, FieldPath, Mode, Ttl},
    errors::{Errors, list, nearest},
    function::{Function, Parameter},
    template::{Fault, Placeholder, Scope, Template},
};

/// Names of what changes from one delivery of a job to the next.
const VOLATILE: [&str; 17] = [
    "job_id",
    "task_id",
    "message_id",
    "delivery_id",
    "delivery_tag",
    "delivery_count",
    "attempt",
    "attempts",
    "retries",
    "retry_count",
    "trace_id",
    "span_id",
    "nonce",
    "timestamp",
    "request_time",
    "enqueued_at",
    "now",
];

/// Whether a value of this name changes from one delivery of a job to the next.
pub(crate) fn names_the_delivery(name: &str) -> bool {
    VOLATILE.contains(&name)
}

/// A period that a placeholder can name.
struct Period {
    name: &'static str,
    /// The longest it can be, in seconds, and as a ttl.
    length: u64,
    ttl: &'static str,
    /// Finer periods that together with it name one of theirs: a year and a month are a month.
    parts: &'static [&'static str],
}

static PERIODS: [Period; 7] = [
    Period { name: "hour", length: HOUR, ttl: "1h", parts: &[] },
    Period { name: "day", length: DAY, ttl: "1d", parts: &["hour"] },
    Period { name: "date", length: DAY, ttl: "1d", parts: &["hour"] },
    Period { name: "week", length: 7 * DAY, ttl: "7d", parts: &["day", "date"] },
    Period { name: "month", length: 31 * DAY, ttl: "31d", parts: &["day", "date", "week"] },
    Period { name: "quarter", length: 92 * DAY, ttl: "92d", parts: &["month", "date", "week"] },
    Period { name: "year", length: 366 * DAY, ttl: "366d", parts: &["quarter", "month", "date", "week"] },
];

/// Whether a name with this last word is there to tell one job from another. Others, such as `receipt`, are as likely
/// to be the name of the thing.
fn tells_apart(word: &str) -> bool {
    word == "id" || PERIODS.iter().any(|period| period.name == word)
}

/// The template beside its literal and the parameters that it names.
pub(super) struct Key {
    pub(super) literal: LitStr,
    pub(super) source: String,
    pub(super) template: Template,
    pub(super) parts: Vec<Borrow>,
}

impl Key {
    pub(super) fn new(
        args: &Args,
        function: &Function,
        parameters: &[Parameter<'_>],
        errors: &mut Errors,
    ) -> Option<Self> {
        let names: Vec<String> =
            parameters.iter().filter(|p| !p.is_made_up()).map(|p| p.name.clone()).collect();
        let scope = Scope {
            function: &function.sig.ident.unraw().to_string(),
            parameters: &names,
            singleton: args.gave("singleton"),
            tells_apart,
        };
        let Some(key) = &args.key else {
            if !args.gave("key") {
                errors.at(Span::call_site(), missing_key(&scope));
            }
            return None;
        };
        let (literal, source) = (key.value.clone(), key.value.value());
        let (template, mut faults) = Template::parse(&source, &scope);
        if let Some(singleton) = &args.singleton {
            if let Some(first) = template.placeholders.first() {
                let fact = format!(
                    "`singleton` means one key for all calls, and the key holds `<{}>`",
                    first.name()
                );
                errors.at(singleton.span, format!("{fact}\nkeep one of them"));
            }
        } else if template.is_constant() && !source.is_empty() && !args.gave("singleton") {
            faults.push(Template::constant_fault(&source, &scope));
        }
        faults.extend(
            template.suspects.iter().filter_map(|suspect| misspelled_foreign(suspect, &source, &scope)),
        );
        let mut parts = Vec::new();
        for placeholder in &template.placeholders {
            match parameters.iter().find(|p| p.name == placeholder.root() && !p.is_made_up()) {
                None => faults.push(unknown_placeholder(placeholder, &scope, parameters)),
                Some(parameter) => {
                    check_nameable(parameter, function, errors);
                    let fields =
                        placeholder.path[1..].iter().map(|field| member(field, literal.span())).collect();
                    match fields {
                        Some(fields) => parts.push(Borrow::new(&parameter.ident, fields, literal.span())),
                        None => faults.push(no_field(placeholder)),
                    }
                }
            }
        }
        for fault in &faults {
            errors.at(literal.span(), fault.show(&source, &faults));
        }
        Some(Self { literal, source, template, parts })
    }
}

/// A field by its name, raw where that is a keyword, or by its index; `None` where no field can be called so.
fn member(field: &str, span: Span) -> Option<Member> {
    if let Ok(index) = field.parse() {
        return Some(Member::Unnamed(Index { index, span }));
    }
    let name = syn::parse_str::<Ident>(field).or_else(|_| syn::parse_str(&format!("r#{field}")));
    name.ok().map(|mut name| {
        name.set_span(span);
        Member::Named(name)
    })
}

fn no_field(placeholder: &Placeholder) -> Fault {
    let fact = format!("`<{}>` is not a path of fields", placeholder.name());
    Fault::say(
        placeholder.at.clone(),
        fact,
        "write a parameter and its fields, such as `<order.customer.id>`",
    )
}

fn missing_key(scope: &Scope<'_>) -> String {
    let named = scope.parameters.iter().find(|name| *name != "self");
    let example = named.map_or_else(
        || format!("key = \"{}\", singleton", scope.function),
        |name| format!("key = \"{}:<{name}>\"", scope.function),
    );
    format!(
        "an idempotent job needs a key: what the job is for, never which delivery it is\nwrite `{example}`"
    )
}

/// `{usr_id}`, which is nearly a parameter in braces: neither fixed text nor one that the first pass knows.
fn misspelled_foreign(suspect: &Placeholder, source: &str, scope: &Scope<'_>) -> Option<Fault> {
    // Of two letters each is near every other.
    let name = Some(suspect.root()).filter(|root| root.chars().count() > 2)?;
    let near = nearest(name, scope.parameters.iter().map(String::as_str))?;
    let path = [&[near.to_owned()], &suspect.path[1..]].concat().join(".");
    let separator = if source[..suspect.at.start].ends_with('>') { ":" } else { "" };
    let fact = format!("`{}` is not a placeholder; did you mean `<{path}>`?", &source[suspect.at.clone()]);
    Some(Fault::misspelled(suspect.at.clone(), fact, &format!("{separator}<{path}>"), ""))
}

fn unknown_placeholder(placeholder: &Placeholder, scope: &Scope<'_>, parameters: &[Parameter<'_>]) -> Fault {
    let names = || scope.parameters.iter().map(String::as_str);
    let fact = format!("`{}` is not a parameter of `{}`", placeholder.root(), scope.function);
    let mut known = format!("the parameters are {}", list(names()));
    let destructured = parameters.iter().any(Parameter::is_made_up);
    if destructured {
        known.push_str("\na destructured parameter has no name here: name it, and take it apart in the body");
    }
    let at = placeholder.at.clone();
    if let Some(near) = nearest(placeholder.root(), names()) {
        let path = [&[near.to_owned()], &placeholder.path[1..]].concat();
        let (fact, right) = (format!("{fact}; did you mean `{near}`?"), format!("<{}>", path.join(".")));
        return Fault::misspelled(at, fact, &right, &format!(" ({known})"));
    }
    if !destructured && scope.parameters.iter().any(|name| name == "self") {
        let field = placeholder.name();
        known = format!("{known}\na field of `self` is written `<self.{field}>`");
    }
    Fault::say(at, fact, known)
}

/// A placeholder that names the delivery would let a re-enqueued job run again.
pub(super) fn check_volatile(args: &Args, key: &Key, errors: &mut Errors) {
    let allowed: Vec<String> = args.allow_volatile.iter().map(FieldPath::name).collect();
    let allows = |placeholder: &Placeholder| {
        allowed.iter().any(|name| *name == placeholder.name() || name == placeholder.last())
    };
    // A list that could not be read may have held any of them.
    let unread = args.gave("allow_volatile") && allowed.is_empty();
    for placeholder in key.template.placeholders.iter().filter(|_| !unread) {
        if names_the_delivery(placeholder.last()) && !allows(placeholder) {
            let name = placeholder.name();
            let fact = format!(
                "`<{name}>` names the delivery, not the intent: a re-enqueued job gets another one and would run again"
            );
            let remedy = format!(
                "key the job by what it is for, or write `allow_volatile({name})` if every redelivery carries the same one"
            );
            errors.at(
                key.literal.span(),
                Fault::say(placeholder.at.clone(), fact, remedy).show(&key.source, &[]),
            );
        }
    }
    for path in &args.allow_volatile {
        let name = path.name();
        if !key.template.placeholders.iter().any(|p| p.name() == name || p.last() == name) {
            errors.at(
                path.root.span(),
                format!("`<{name}>` is not in the key; remove `allow_volatile({name})`"),
            );
        }
    }
}

/// A completed key must be remembered for as long as the period it names.
pub(super) fn check_period(args: &Args, key: &Key, errors: &mut Errors) {
    let (seconds, ttl, at) = match &args.ttl {
        Some(Arg { value: Ttl::For(ttl), span, .. }) => (ttl.seconds, ttl.written.clone(), *span),
        None if !args.gave("ttl") && args.mode() == Some(Mode::RecordAfter) => {
            (DEFAULT_TTL, "24h, the default of `record_after`,".to_owned(), key.literal.span())
        }
        _ => return,
    };
    if args.gave("allow_short_ttl") {
        return;
    }
    let named: Vec<_> = key.template.placeholders.iter().filter_map(Named::of).collect();
    let refined = |coarse: &Named<'_>| {
        named.iter().any(|fine| fine.of == coarse.of && coarse.period.parts.contains(&fine.period.name))
    };
    let short = named.iter().filter(|named| seconds < named.period.length && !refined(named));
    if let Some(Named { placeholder, period, .. }) = short.max_by_key(|named| named.period.length) {
        let Period { name: period, ttl: enough, .. } = period;
        let fact = format!(
            "a completed key is forgotten after {ttl} while its {period} still runs: the job would be done again for the same {period}"
        );
        let remedy = format!(
            "write `ttl = \"{enough}\"` or more, `\"forever\"`, or `allow_short_ttl` if no repeat comes that late"
        );
        errors.at(at, Fault::say(placeholder.at.clone(), fact, remedy).show(&key.source, &[]));
    }
}

/// A placeholder that names a period.
struct Named<'a> {
    placeholder: &'a Placeholder,
    period: &'static Period,
    /// What it is the period of: of `<invoice.due_year>` it is `invoice` and `due`.
    of: (&'a [String], &'a str),
}

impl<'a> Named<'a> {
    fn of(placeholder: &'a Placeholder) -> Option<Self> {
        // The name of `<month.0>` is `month`.
        let is_name = |segment: &String| segment.parse::<u32>().is_err();
        let at = placeholder.path.iter().rposition(is_name)?;
        let (before, last) = (&placeholder.path[..at], &placeholder.path[at]);
        let (prefix, word) = last.rsplit_once('_').unwrap_or(("", last));
        let period = PERIODS.iter().find(|period| period.name == word)?;
        Some(Self { placeholder, period, of: (before, prefix) })
    }
}
