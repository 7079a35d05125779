//! What is to be made of the attribute and its function, once every check across them has passed.

mod fingerprint;
mod key;
mod options;
mod phases;
mod shape;

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::{Member, Path, parse_quote};

use self::{fingerprint::fingerprint, key::Key, phases::Phases};
pub(crate) use self::{
    key::names_the_delivery,
    options::{lease_only, never_stale},
};
use crate::{
    args::{Args, Mode, OnStale, Ttl},
    errors::Errors,
    function::Function,
    key_fn::KeyFn,
    probe::Probe,
    template::Template,
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
    /// Whom to ask about a stale claim.
    pub(crate) probe: Option<Probe>,
    /// The parameter with the caller's transaction, in the mode that has one.
    pub(crate) transaction: Option<Transaction>,
    /// Whether the body has phases.
    pub(crate) phased: bool,
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

impl Borrow {
    /// The parameter under the literal's or path's location, with the parameter's own hygiene.
    pub(crate) fn new(parameter: &Ident, fields: Vec<Member>, at: Span) -> Self {
        let mut root = parameter.clone();
        root.set_span(at.resolved_at(parameter.span()));
        Self { root, fields }
    }
}

impl Plan {
    /// Checks the attribute against itself and against its function: a rule, a function.
    pub(crate) fn new(args: Args, function: Option<Function>, errors: &mut Errors) -> Option<Self> {
        options::check_mode(&args, errors);
        options::check_lease(&args, errors);
        options::check_takeovers(&args, errors);
        options::check_wait(&args, errors);
        options::check_ttl(&args, errors);
        let mut function = function?;
        shape::check_single(&function, errors);
        shape::check_track_caller(&function, errors);
        shape::check_const(&function, errors);
        shape::check_foreign(&function, errors);
        shape::check_output(&function, errors);
        shape::check_named_output(&function, errors);
        shape::check_future(&function, errors);
        shape::check_owned(&args, &function, errors);
        shape::check_generics(&function, errors);
        shape::check_key_fn(&args, &function, errors);
        let transaction = Transaction::new(&args, &function, errors);
        let phases = Phases::find(&function);
        phases.check_names(&function, errors);
        phases.check_mode(args.mode(), transaction.as_ref(), &function, errors);
        phases.check_bodies(&function, errors);
        let parameters = function.parameters();
        let key = Key::new(&args, &function, &parameters, errors);
        let fingerprint = fingerprint(&args, key.as_ref(), &function, &parameters, errors);
        let key = key?;
        key::check_volatile(&args, &key, errors);
        key::check_period(&args, &key, errors);
        let mode = args.mode()?;
        let key_fn = args.key_fn.as_ref().map(|name| KeyFn::new(&name.value, &function, &key.template));
        let probe = Probe::new(&args, &function, &key.template);
        let krate =
            args.krate.as_ref().map_or_else(|| parse_quote!(::idem_runtime), |krate| krate.value.clone());
        let contract = contract(&args, mode, &key.source);
        if let Some(transaction) = &transaction {
            transaction.check_apart(&key.literal, &key.template, &args, errors);
            transaction.give_way(&mut function);
        }
        let Key { template: Template { texts, .. }, parts, .. } = key;
        Some(Self {
            function,
            args,
            mode,
            krate,
            texts,
            parts,
            fingerprint,
            key_fn,
            probe,
            transaction,
            phased: !phases.is_empty(),
            contract,
        })
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
    let stale = match args.on_stale.as_ref().map(|policy| &policy.value) {
        Some(OnStale::Retry) => "is taken over and run again (`retry`)".to_owned(),
        Some(OnStale::Probe(path)) => {
            let path = path.to_token_stream().to_string().replace(char::is_whitespace, "");
            format!("is taken over, and `{path}` says whether it is to run again (`probe`)")
        }
        Some(OnStale::Alert) | None => "needs review (`alert`)".to_owned(),
    };
    let recorded = match mode {
        Mode::LockFirst => {
            format!(
                "claimed before it runs (`lock_first`); a claim without a sign of life for `{lease}` {stale}"
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
