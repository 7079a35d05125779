//! The arguments against one another: what the mode does not have, and options that contradict each other.

use super::DEFAULT_LEASE;
use crate::{
    args::{Arg, Args, Mode, OnStale, Ttl},
    errors::Errors,
};

/// What `lock_first` alone has is refused elsewhere, not ignored.
pub(super) fn check_mode(args: &Args, errors: &mut Errors) {
    let Some(reason) = args.mode().and_then(|mode| never_stale(mode, "job")) else { return };
    let given = [
        ("stale_after", args.stale_after.as_ref().map(|arg| arg.name)),
        ("heartbeat", args.heartbeat.as_ref().map(|arg| arg.name)),
        ("on_stale", args.on_stale.as_ref().map(|arg| arg.name)),
        ("max_takeovers", args.max_takeovers.as_ref().map(|arg| arg.name)),
    ];
    for (name, span) in given {
        if let Some(span) = span {
            errors.at(span, lease_only(name, &reason));
        }
    }
}

/// Why no claim of the mode can go stale; `what` is the job or the phase.
pub(crate) fn never_stale(mode: Mode, what: &str) -> Option<String> {
    match mode {
        Mode::LockFirst => None,
        Mode::RecordAfter => {
            Some(format!("`record_after` claims nothing before the {what} runs, so nothing can go stale"))
        }
        Mode::Transactional => {
            Some("the claim of `transactional` goes with its transaction, so nothing can go stale".to_owned())
        }
    }
}

pub(crate) fn lease_only(name: &str, reason: &str) -> String {
    format!("`{name}` belongs to `lock_first`: {reason}\nremove it, or write `mode = \"lock_first\"`")
}

/// Without a heartbeat the lease is the longest that the job may run, and no default knows that.
pub(super) fn check_lease(args: &Args, errors: &mut Errors) {
    let silent = args.heartbeat.as_ref().filter(|heartbeat| !heartbeat.value);
    if let Some(heartbeat) = silent
        && args.mode() == Some(Mode::LockFirst)
        && !args.gave("stale_after")
    {
        errors.at(
            heartbeat.name,
            "without a heartbeat the lease must outlast the job, and only you know how long it runs\n\
             add `stale_after = \"…\"`, longer than the longest run",
        );
    }
}

/// A limit of takeovers where there are none.
pub(super) fn check_takeovers(args: &Args, errors: &mut Errors) {
    let alerts = !matches!(
        args.on_stale.as_ref().map(|policy| &policy.value),
        Some(OnStale::Retry | OnStale::Probe(_))
    );
    let known = args.on_stale.is_some() || !args.gave("on_stale");
    if let Some(limit) = &args.max_takeovers
        && args.mode() == Some(Mode::LockFirst)
        && known
        && alerts
    {
        errors.at(
            limit.name,
            "`max_takeovers` limits what `\"retry\"` and `probe(path)` do, and with `\"alert\"` nothing is taken over\n\
             remove it, or write `on_stale = \"retry\"`",
        );
    }
}

/// A limit of waiting where nothing waits.
pub(super) fn check_wait(args: &Args, errors: &mut Errors) {
    let known = args.on_busy.is_some() || !args.gave("on_busy");
    if let Some(wait) = &args.wait_for
        && known
        && !args.waits()
    {
        errors.at(
            wait.name,
            "`wait_for` limits what `on_busy = \"wait\"` does, and without it a busy key is answered at once\n\
             remove it, or write `on_busy = \"wait\"`",
        );
    }
}

/// A completed key must not be forgotten before a lost claim is noticed.
pub(super) fn check_ttl(args: &Args, errors: &mut Errors) {
    let Some(Arg { value: Ttl::For(ttl), span, .. }) = &args.ttl else { return };
    if args.mode() != Some(Mode::LockFirst) {
        return;
    }
    let (lease, said) = match &args.stale_after {
        Some(lease) => (lease.value.seconds, format!("`stale_after = \"{}\"`", lease.value.written)),
        None if args.gave("stale_after") => return,
        None => (DEFAULT_LEASE, format!("`stale_after`, {DEFAULT_LEASE}s by default")),
    };
    if ttl.seconds < lease {
        errors.at(
            *span,
            format!(
                "`ttl = \"{}\"` is below {said}: a completed key would be forgotten sooner than a lost claim is noticed\n\
                 give the ttl the time in which repeats can come",
                ttl.written
            ),
        );
    }
}
