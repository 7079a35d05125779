//! The options against one another, against the mode and against the body.

use proc_macro2::Ident;
use syn::LitStr;

use super::{Body, Phase, options::Options, probe::Probe};
use crate::{
    args::{Arg, Duration, FieldPath, Mode, OnError, OnStale},
    errors::Errors,
    plan::{lease_only, names_the_delivery, never_stale},
    transaction::no_transaction,
};

/// Everything the expansion needs; nothing in it can fail.
pub(super) struct Checked<'a> {
    pub(super) name: &'a LitStr,
    pub(super) mode: Mode,
    pub(super) lease: Option<&'a Arg<Duration>>,
    pub(super) on_stale: Option<&'a Arg<OnStale<Probe>>>,
    pub(super) on_error: Option<&'a Arg<OnError>>,
    /// The variable with the transaction, in the mode that has one.
    pub(super) tx: Option<&'a Ident>,
    pub(super) each: Option<&'a FieldPath>,
    pub(super) body: &'a Body,
}

impl Checked<'_> {
    /// What asks about a stale claim.
    pub(super) fn probe(&self) -> Option<&Probe> {
        match &self.on_stale?.value {
            OnStale::Probe(probe) => Some(probe),
            OnStale::Alert | OnStale::Retry => None,
        }
    }
}

/// One rule after the other.
pub(super) fn check<'a>(phase: &'a Phase, errors: &mut Errors) -> Option<Checked<'a>> {
    let Phase { name, options, body, .. } = phase;
    check_lease(options, errors);
    check_transaction(options, errors);
    check_each(options, errors);
    let body = body.as_ref()?;
    check_body(options, body, errors);
    Some(Checked {
        name: name.as_ref()?,
        mode: options.mode()?,
        lease: options.stale_after.as_ref(),
        on_stale: options.on_stale.as_ref(),
        on_error: options.on_error.as_ref(),
        tx: options.tx.as_ref().map(|tx| &tx.value),
        each: options.each.as_ref().map(|each| &each.value),
        body,
    })
}

/// What `lock_first` alone has is refused elsewhere, not ignored.
fn check_lease(options: &Options, errors: &mut Errors) {
    let Some(reason) = options.mode().and_then(|mode| never_stale(mode, "phase")) else { return };
    let given = [
        ("stale_after", options.stale_after.as_ref().map(|arg| arg.name)),
        ("on_stale", options.on_stale.as_ref().map(|arg| arg.name)),
    ];
    for (name, span) in given {
        if let Some(span) = span {
            errors.at(span, lease_only(name, &reason));
        }
    }
}

/// A transaction where there is none, or none where there must be one.
fn check_transaction(options: &Options, errors: &mut Errors) {
    match (options.mode(), &options.tx, &options.mode) {
        (Some(mode @ (Mode::LockFirst | Mode::RecordAfter)), Some(tx), _) => {
            errors.at(tx.name, no_transaction(mode));
        }
        (Some(Mode::Transactional), None, Some(mode)) if !options.gave("tx") => errors.at(
            mode.span,
            "a `transactional` phase is recorded in the transaction of its rows, and this one names none\n\
             add `tx = tx`, with the variable that holds it",
        ),
        _ => {}
    }
}

/// An element is told from another by what it is, never by which delivery brought it.
fn check_each(options: &Options, errors: &mut Errors) {
    let Some(each) = &options.each else { return };
    let path = each.value.name();
    if path.rsplit('.').next().is_some_and(names_the_delivery) {
        errors.at(
            each.value.root.span(),
            format!(
                "`<{path}>` names the delivery, not the element: a job that is enqueued again gets another one, and the phase would run again\n\
                 name what the element is, such as `each = <line.id>`"
            ),
        );
    }
}

/// Where the body waits for nothing, neither does what stands around it.
fn check_body(options: &Options, body: &Body, errors: &mut Errors) {
    if let (Body::Sync { head, .. }, Some(Mode::Transactional)) = (body, options.mode()) {
        errors.push(syn::Error::new_spanned(
            head,
            "a `transactional` phase speaks to its database before and after its body, and a closure cannot wait for it\n\
             write `async { … }`, in an `async fn`",
        ));
    }
    let Some(Arg { value: OnStale::Probe(probe), .. }) = &options.on_stale else { return };
    let message = match (body, probe.is_async()) {
        (Body::Async { .. }, Some(false)) => {
            "the probe of an asynchronous phase is awaited\nwrite `probe(async || …)`"
        }
        (Body::Sync { .. }, Some(true)) => {
            "the probe of a synchronous phase is called, and not awaited\nwrite `probe(|| …)`"
        }
        _ => return,
    };
    errors.push(syn::Error::new_spanned(probe.written(), message));
}
