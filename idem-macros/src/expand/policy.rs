//! The setters of a job that a phase has as well.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::quote_spanned;

use crate::args::{Arg, Duration, ErrorRule, OnError, OnStale};

/// Where the setters stand, and by what path they reach the runtime.
pub(crate) struct Setters<'a> {
    pub(crate) span: Span,
    pub(crate) krate: &'a TokenStream,
}

impl Setters<'_> {
    pub(crate) fn lease(&self, lease: Option<&Arg<Duration>>) -> Option<TokenStream> {
        let seconds = Literal::u64_unsuffixed(lease?.value.seconds);
        Some(quote_spanned!(self.span=> .stale_after(#seconds)))
    }

    pub(crate) fn on_stale<P>(&self, policy: Option<&Arg<OnStale<P>>>) -> Option<TokenStream> {
        let Self { span, krate } = self;
        let policy = match policy?.value {
            OnStale::Alert => "Alert",
            OnStale::Retry => "Retry",
            OnStale::Probe(_) => "Probe",
        };
        let policy = Ident::new(policy, *span);
        Some(quote_spanned!(*span=> .on_stale(#krate::__private::OnStale::#policy)))
    }

    pub(crate) fn on_error(&self, rule: Option<&Arg<OnError>>) -> Option<TokenStream> {
        let Self { span, krate } = self;
        let OnError::Rule(rule) = rule?.value else { return None };
        let rule = match rule {
            ErrorRule::Hold => "Hold",
            ErrorRule::Release => "Release",
            ErrorRule::ByMark => "ByMark",
            ErrorRule::Record => "Record",
        };
        let rule = Ident::new(rule, *span);
        Some(quote_spanned!(*span=> .on_error(#krate::__private::ErrorRule::#rule)))
    }
}
