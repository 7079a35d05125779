//! What is to be made of the attribute and its function, once every check across them has passed.

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::{
    GenericArgument, GenericParam, Index, LitStr, Member, Path, PathArguments, TypeParamBound,
    WherePredicate, ext::IdentExt, parse_quote,
};

use crate::{
    args::{Arg, Args, Duration, FieldPath, Mode, OnStale, Ttl},
    errors::{Errors, did_you_mean, list, nearest},
    function::{Function, Parameter, ParameterKind, borrowed_value, mentions},
    key_fn::KeyFn,
    template::{Fault, Placeholder, Scope, Template},
    transaction::Transaction,
};

/// Everything the expansion needs; nothing in it can fail.
pub(crate) struct Plan {
    pub(crate) function: Function,
    pub(crate) args: Args,
    pub(crate) mode: Mode,
    pub(crate) krate: Path,
    /// The template's fixed texts.
    pub(crate) texts: Vec<String>,
    /// The template's placeholders.
    pub(crate) parts: Vec<Borrow>,
    pub(crate) fingerprint: Vec<Borrow>,
    pub(crate) key_fn: Option<KeyFn>,
    /// The parameter with the caller's transaction, in the mode that has one.
    pub(crate) transaction: Option<Transaction>,
    /// The paragraph that the user's docs gain.
    pub(crate) contract: String,
}

/// A parameter or a path of fields from one, as the expansion borrows it.
pub(crate) struct Borrow {
    pub(crate) root: Ident,
    pub(crate) fields: Vec<Member>,
}

const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

/// The ttl of `record_after` where none is said.
const DEFAULT_TTL: u64 = DAY;
/// The lease where none is said.
const DEFAULT_LEASE: u64 = 60;
/// How long `on_busy = "wait"` waits where nothing is said.
pub(crate) const DEFAULT_WAIT: u64 = 10;

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

/// Names of periods, the longest they can be, and that length as a ttl.
const PERIODS: [(&str, u64, &str); 7] = [
    ("hour", HOUR, "1h"),
    ("day", DAY, "1d"),
    ("date", DAY, "1d"),
    ("week", 7 * DAY, "7d"),
    ("month", 31 * DAY, "31d"),
    ("quarter", 92 * DAY, "92d"),
    ("year", 366 * DAY, "366d"),
];

impl Borrow {
    /// The parameter under the literal's or path's location, with the parameter's own hygiene.
    fn new(parameter: &Ident, fields: Vec<Member>, at: Span) -> Self {
        let mut root = parameter.clone();
        root.set_span(at.resolved_at(parameter.span()));
        Self { root, fields }
    }
}

impl Plan {
    /// Checks the attribute against itself and against its function.
    pub(crate) fn new(args: Args, function: Option<Function>, errors: &mut Errors) -> Option<Self> {
        check_mode(&args, errors);
        check_options(&args, errors);
        let mut function = function?;
        let transaction = Transaction::new(&args, &function, errors);
        check_generics(&function, errors);
        check_key_fn(&args, &function, errors);
        if args.replay.as_ref().is_none_or(|replay| replay.value) {
            check_borrowed(&function, errors);
        }
        let parameters = function.parameters();
        let key = Key::new(&args, &function, &parameters, errors);
        let fingerprint = fingerprint(&args, key.as_ref(), &function, &parameters, errors);
        let key = key?;
        check_volatile(&args, &key, errors);
        check_period(&args, &key, errors);
        let mode = args.mode()?;
        let key_fn = args.key_fn.as_ref().map(|name| KeyFn::new(&name.value, &function, &key.template));
        let krate =
            args.krate.as_ref().map_or_else(|| parse_quote!(::idem_runtime), |krate| krate.value.clone());
        let contract = contract(&args, mode, &key.source);
        if let Some(transaction) = &transaction {
            transaction.check_apart(&key.literal, &key.template, &args, errors);
            transaction.give_way(&mut function);
        }
        let Key { template: Template { texts, .. }, parts, .. } = key;
        Some(Self { function, args, mode, krate, texts, parts, fingerprint, key_fn, transaction, contract })
    }

    /// Whether the result is stored, to answer repeats with.
    pub(crate) fn stores(&self) -> bool {
        self.args.replay.as_ref().is_none_or(|replay| replay.value)
    }

    /// Whether the key has a `<self.…>`, which tells one `Self` type's calls from another's.
    pub(crate) fn is_keyed_by_self(&self) -> bool {
        self.parts.iter().any(|part| part.root == "self")
    }
}

/// The template beside its literal and the parameters that it names.
struct Key {
    literal: LitStr,
    source: String,
    template: Template,
    parts: Vec<Borrow>,
}

impl Key {
    fn new(
        args: &Args,
        function: &Function,
        parameters: &[Parameter<'_>],
        errors: &mut Errors,
    ) -> Option<Self> {
        let names: Vec<String> =
            parameters.iter().filter(|p| !p.is_made_up()).map(|p| p.name.clone()).collect();
        let scope = Scope { function: &function.sig.ident.unraw().to_string(), parameters: &names };
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
        } else if template.is_constant() && !source.is_empty() {
            faults.push(Template::constant_fault(&source, &scope));
        }
        let mut parts = Vec::new();
        for placeholder in &template.placeholders {
            match parameters.iter().find(|p| p.name == placeholder.root() && !p.is_made_up()) {
                None => faults.push(unknown_placeholder(placeholder, &scope, parameters)),
                Some(parameter) => {
                    parameter.check_nameable(function, errors);
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

impl Parameter<'_> {
    /// Refuses what a key or a fingerprint cannot name.
    fn check_nameable(&self, function: &Function, errors: &mut Errors) {
        let name = &self.name;
        match self.kind {
            ParameterKind::Named | ParameterKind::Receiver => {}
            ParameterKind::Destructured(pattern) => errors.push(syn::Error::new_spanned(
                pattern,
                format!(
                    "`{name}` is bound inside a pattern, and keys and fingerprints are made of whole parameters of `{}` and their fields\n\
                     give the parameter a name of its own, write that instead, and take it apart in the body",
                    function.sig.ident
                ),
            )),
            ParameterKind::Conditional(cfg) => errors.push(syn::Error::new_spanned(
                cfg,
                format!("`{name}` can be compiled out, and a key that changes with the build is no identity\nremove the `#[cfg]`, or leave `{name}` out"),
            )),
        }
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

fn unknown_placeholder(placeholder: &Placeholder, scope: &Scope<'_>, parameters: &[Parameter<'_>]) -> Fault {
    let names = || scope.parameters.iter().map(String::as_str);
    let fact = format!("`{}` is not a parameter of `{}`", placeholder.root(), scope.function);
    let mut known = format!("the parameters are {}", list(names()));
    if parameters.iter().any(Parameter::is_made_up) {
        known.push_str("\na destructured parameter has no name here: name it, and take it apart in the body");
    }
    let at = placeholder.at.clone();
    match nearest(placeholder.root(), names()) {
        Some(near) => {
            let path = [&[near.to_owned()], &placeholder.path[1..]].concat();
            let (fact, right) = (format!("{fact}; did you mean `{near}`?"), format!("<{}>", path.join(".")));
            Fault::misspelled(at, fact, &right, &format!(" ({known})"))
        }
        None => Fault::say(at, fact, known),
    }
}

/// What `lock_first` alone has is refused elsewhere, not ignored.
fn check_mode(args: &Args, errors: &mut Errors) {
    let reason = match args.mode() {
        Some(Mode::RecordAfter) => {
            "`record_after` claims nothing before the job runs, so nothing can go stale"
        }
        Some(Mode::Transactional) => {
            "the claim of `transactional` goes with its transaction, so nothing can go stale"
        }
        Some(Mode::LockFirst) | None => return,
    };
    let lease_only = [
        ("stale_after", args.stale_after.as_ref().map(|arg| arg.name)),
        ("heartbeat", args.heartbeat.as_ref().map(|arg| arg.name)),
        ("on_stale", args.on_stale.as_ref().map(|arg| arg.name)),
        ("max_takeovers", args.max_takeovers.as_ref().map(|arg| arg.name)),
    ];
    for (name, span) in lease_only {
        if let Some(span) = span {
            errors.at(
                span,
                format!(
                    "`{name}` belongs to `lock_first`: {reason}\nremove it, or write `mode = \"lock_first\"`"
                ),
            );
        }
    }
}

/// Options that contradict each other.
fn check_options(args: &Args, errors: &mut Errors) {
    let lock_first = args.mode() == Some(Mode::LockFirst);
    if let Some(heartbeat) = args.heartbeat.as_ref().filter(|heartbeat| lock_first && !heartbeat.value)
        && !args.gave("stale_after")
    {
        errors.at(
            heartbeat.name,
            "without a heartbeat the lease must outlast the job, and only you know how long it runs\n\
             add `stale_after = \"…\"`, longer than the longest run",
        );
    }
    let retries = args.on_stale.as_ref().is_some_and(|policy| policy.value == OnStale::Retry);
    if let Some(limit) = args.max_takeovers.as_ref().filter(|_| lock_first && !retries)
        && (args.on_stale.is_some() || !args.gave("on_stale"))
    {
        errors.at(
            limit.name,
            "`max_takeovers` limits what `on_stale = \"retry\"` does, and with `\"alert\"` nothing is taken over\n\
             remove it, or write `on_stale = \"retry\"`",
        );
    }
    let waits = args.waits();
    if let Some(wait) = args.wait_for.as_ref().filter(|_| !waits)
        && (args.on_busy.is_some() || !args.gave("on_busy"))
    {
        errors.at(
            wait.name,
            "`wait_for` limits what `on_busy = \"wait\"` does, and without it a busy key is answered at once\n\
             remove it, or write `on_busy = \"wait\"`",
        );
    }
    if let Some(Arg { value: Ttl::For(ttl), span, .. }) = &args.ttl
        && lock_first
        && (args.stale_after.is_some() || !args.gave("stale_after"))
    {
        check_ttl_above_lease(ttl, *span, args.stale_after.as_ref(), errors);
    }
}

fn check_ttl_above_lease(ttl: &Duration, at: Span, lease: Option<&Arg<Duration>>, errors: &mut Errors) {
    let (seconds, lease) = match lease {
        Some(lease) => (lease.value.seconds, format!("`stale_after = \"{}\"`", lease.value.written)),
        None => (DEFAULT_LEASE, format!("`stale_after`, {DEFAULT_LEASE}s by default")),
    };
    if ttl.seconds < seconds {
        errors.at(
            at,
            format!(
                "`ttl = \"{}\"` is below {lease}: a completed key would be forgotten sooner than a lost claim is noticed\n\
                 give the ttl the time in which repeats can come",
                ttl.written
            ),
        );
    }
}

fn check_key_fn(args: &Args, function: &Function, errors: &mut Errors) {
    let Some(key_fn) = &args.key_fn else { return };
    if key_fn.value == function.sig.ident {
        errors.at(
            key_fn.value.span(),
            format!(
                "`{}` is the job itself; the function that renders its key needs a name of its own",
                key_fn.value
            ),
        );
    } else if function.is_async_trait() {
        errors.at(
            key_fn.value.span(),
            "`key_fn` makes a function beside the job, and a trait's method can have none there\n\
             put the attribute on an inherent method or a free function, and call that from the trait's",
        );
    }
}

/// A borrowed value is refused by its syntax: what rustc says of its `Deserialize` helps nobody.
fn check_borrowed(function: &Function, errors: &mut Errors) {
    if let Some(span) = borrowed_value(&function.output) {
        errors.at(
            span,
            "a borrowed result cannot be stored and read back\n\
             return an owned value, or write `replay = false`: repeats then get `Error::AlreadyCompleted`",
        );
    }
}

/// Each type and const parameter must show in a parameter, or calls that differ in it alone would share a key.
fn check_generics(function: &Function, errors: &mut Errors) {
    let generics = &function.sig.generics;
    for param in &generics.params {
        let (name, span) = match param {
            GenericParam::Type(param) => (&param.ident, param.ident.span()),
            GenericParam::Const(param) => (&param.ident, param.ident.span()),
            GenericParam::Lifetime(_) => continue,
        };
        let shown = function.parameter_types().any(|ty| mentions(ty.to_token_stream(), param))
            || determined_by_bounds(function, param);
        if !shown {
            errors.at(
                span,
                format!(
                    "no parameter mentions `{name}`, so `{job}::<A>(…)` and `{job}::<B>(…)` would share a key and its result\n\
                     take a parameter that depends on `{name}` and name it in the key, or write one function for each",
                    job = function.sig.ident
                ),
            );
        }
    }
}

/// Whether another parameter's bound fixes this one: `I: Iterator<Item = T>`, `F: Fn() -> T`.
fn determined_by_bounds(function: &Function, param: &GenericParam) -> bool {
    let generics = &function.sig.generics;
    let inline = generics.type_params().flat_map(|param| &param.bounds);
    let predicates = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let clauses = predicates.filter_map(|predicate| match predicate {
        WherePredicate::Type(predicate) => Some(&predicate.bounds),
        _ => None,
    });
    inline.chain(clauses.flatten()).any(|bound| bound_fixes(bound, param))
}

fn bound_fixes(bound: &TypeParamBound, param: &GenericParam) -> bool {
    let TypeParamBound::Trait(bound) = bound else { return false };
    bound.path.segments.iter().any(|segment| match &segment.arguments {
        PathArguments::Parenthesized(call) => mentions(call.to_token_stream(), param),
        PathArguments::AngleBracketed(angles) => angles.args.iter().any(|argument| match argument {
            GenericArgument::AssocType(assoc) => mentions(assoc.ty.to_token_stream(), param),
            _ => false,
        }),
        PathArguments::None => false,
    })
}

fn check_volatile(args: &Args, key: &Key, errors: &mut Errors) {
    let allowed: Vec<String> = args.allow_volatile.iter().map(FieldPath::name).collect();
    let allows = |placeholder: &Placeholder| {
        allowed.iter().any(|name| *name == placeholder.name() || name == placeholder.last())
    };
    for placeholder in &key.template.placeholders {
        if VOLATILE.contains(&placeholder.last()) && !allows(placeholder) {
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
fn check_period(args: &Args, key: &Key, errors: &mut Errors) {
    let (seconds, ttl, at) = match &args.ttl {
        Some(Arg { value: Ttl::For(ttl), span, .. }) => (ttl.seconds, ttl.written.clone(), *span),
        None if !args.gave("ttl") && args.mode() == Some(Mode::RecordAfter) => {
            (DEFAULT_TTL, "24h, the default of `record_after`,".to_owned(), key.literal.span())
        }
        _ => return,
    };
    if args.allow_short_ttl.is_some() {
        return;
    }
    let named = key.template.placeholders.iter().filter_map(|placeholder| {
        let word = placeholder.last().rsplit('_').next()?;
        let (period, length, enough) = PERIODS.into_iter().find(|(period, ..)| *period == word)?;
        (seconds < length).then_some((placeholder, period, length, enough))
    });
    if let Some((placeholder, period, _, enough)) = named.max_by_key(|(_, _, length, _)| *length) {
        let fact = format!(
            "a completed key is forgotten after {ttl} while its {period} still runs: the job would be done again for the same {period}"
        );
        let remedy = format!(
            "write `ttl = \"{enough}\"` or more, `\"forever\"`, or `allow_short_ttl` if no repeat comes that late"
        );
        errors.at(at, Fault::say(placeholder.at.clone(), fact, remedy).show(&key.source, &[]));
    }
}

fn fingerprint(
    args: &Args,
    key: Option<&Key>,
    function: &Function,
    parameters: &[Parameter<'_>],
    errors: &mut Errors,
) -> Vec<Borrow> {
    let paths = args.fingerprint.as_ref().map_or(&[][..], |arg| &arg.value);
    let mut borrows = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for path in paths {
        let name = path.name();
        let root = name.split('.').next().unwrap_or_default();
        let Some(parameter) = parameters.iter().find(|p| p.name == root && !p.is_made_up()) else {
            let names = || parameters.iter().filter(|p| !p.is_made_up()).map(|p| p.name.as_str());
            errors.at(
                path.root.span(),
                format!(
                    "`{root}` is not a parameter of `{}`{}\nthe parameters are {}",
                    function.sig.ident,
                    did_you_mean(root, names(), ""),
                    list(names())
                ),
            );
            continue;
        };
        if key.is_some_and(|key| key.template.placeholders.iter().any(|p| p.name() == name)) {
            errors.at(
                path.root.span(),
                format!("`{name}` is in the key already: where keys are equal, it is equal too\nremove it from the fingerprint"),
            );
        } else if seen.contains(&name) {
            errors.at(path.root.span(), format!("`{name}` is in the fingerprint twice; keep one"));
        } else {
            parameter.check_nameable(function, errors);
        }
        seen.push(name);
        borrows.push(Borrow::new(&parameter.ident, path.fields.clone(), path.root.span()));
    }
    borrows
}

/// What a reader of the docs must know before calling the job twice.
fn contract(args: &Args, mode: Mode, source: &str) -> String {
    let fence = if source.contains('`') { "`` " } else { "`" };
    let close = fence.chars().rev().collect::<String>();
    let kept = match args.ttl.as_ref().map(|ttl| &ttl.value) {
        Some(Ttl::For(ttl)) => format!("for `{}`", ttl.written),
        None if mode == Mode::RecordAfter => "for `24h`".to_owned(),
        _ => "forever".to_owned(),
    };
    let lease = args.stale_after.as_ref().map_or("60s", |lease| &lease.value.written);
    let retries = args.on_stale.as_ref().is_some_and(|policy| policy.value == OnStale::Retry);
    let recorded = match mode {
        Mode::LockFirst if retries => {
            format!(
                "claimed before it runs (`lock_first`); a claim without a sign of life for `{lease}` is taken over and run again (`retry`)"
            )
        }
        Mode::LockFirst => {
            format!(
                "claimed before it runs (`lock_first`); a claim without a sign of life for `{lease}` needs review (`alert`)"
            )
        }
        Mode::RecordAfter => {
            "recorded after it ran (`record_after`); a crash in between repeats it".to_owned()
        }
        Mode::Transactional => {
            "claimed and completed in the caller's transaction (`transactional`), which keeps its rows and the key or \
             neither"
                .to_owned()
        }
    };
    format!(
        "Idempotent by the key {fence}{source}{close}: {recorded}. A completed key suppresses repeats {kept}."
    )
}

#[cfg(test)]
mod tests;
