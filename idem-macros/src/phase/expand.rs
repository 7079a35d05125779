//! Writes what a phase is: a call like that of a job, and the way its `Err` leaves the function.
//!
//! Total: whatever can be wrong was found before.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

use super::{Body, body::ours, check::Checked};
use crate::{
    args::FieldPath,
    expand::{Setters, borrow, braced, classify, key_part, local, relocate},
    plan::Borrow,
};

/// The block that gives the phase's `Ok`.
pub(super) fn expand(phase: &Checked<'_>, krate: &TokenStream) -> TokenStream {
    Tokens::new(phase, krate).block()
}

/// The faults, around the body, whose names stay in use. As the first of them has the type of an error, no other is
/// found in what is made of the phase.
pub(super) fn instead(body: &TokenStream, error: &syn::Error) -> TokenStream {
    let span = Span::call_site();
    let fault = local("__idem_fault", span);
    let errors = error.to_compile_error();
    let body = syn::parse2::<syn::Expr>(body.clone()).ok();
    let body = body.map(|body| quote_spanned!(span=> let _ = #body;));
    quote_spanned!(span=> { let #fault = { #errors }; #body #fault })
}

/// The phase, beside the span of every token of the calls: located at its name, in the expansion's context.
struct Tokens<'a> {
    phase: &'a Checked<'a>,
    span: Span,
    krate: TokenStream,
    call: Ident,
}

impl<'a> Tokens<'a> {
    fn new(phase: &'a Checked<'a>, krate: &TokenStream) -> Self {
        let span = Span::call_site().located_at(phase.name.span());
        Self { phase, span, krate: relocate(krate.clone(), span), call: local("__idem_call", span) }
    }

    /// What names the phase and runs its body, and the way out for its `Err`. That way is shown before the body is:
    /// so the function's error type is an expectation for it.
    fn block(&self) -> TokenStream {
        let Self { span, krate, call, .. } = self;
        let (leave, none) = (local("__idem_leave", *span), self.none());
        let (value, error) = (local("__idem_value", *span), local("__idem_error", *span));
        let (ticket, run) = (self.ticket(), self.run());
        quote_spanned! {*span=> {
            let #call = #krate::__private::phase_call(#ticket);
            let (#none, #leave) = (#call.no_return(), #krate::__private::phase_leave());
            if let ::core::option::Option::Some(::core::result::Result::Err(#error)) = #none() {
                return #leave(#error);
            }
            match #run {
                ::core::result::Result::Ok(#value) => #value,
                ::core::result::Result::Err(#error) => return #leave(#error),
            }
        }}
    }

    /// `Ticket::phase({ static PHASE … &PHASE }).part(…)`.
    fn ticket(&self) -> TokenStream {
        let Self { phase, span, krate, .. } = self;
        let mode = Ident::new(phase.mode.word(), *span);
        let name = phase.name.value();
        let texts = match phase.each {
            Some(_) => vec![format!("{name}:"), String::new()],
            None => vec![name.clone()],
        };
        let part = phase.each.map(|each| self.part(each));
        let policies = Setters { span: *span, krate };
        let lease = policies.lease(phase.lease);
        let on_stale = policies.on_stale(phase.on_stale);
        let on_error = policies.on_error(phase.on_error);
        quote_spanned! {*span=>
            #krate::__private::Ticket::phase({
                static PHASE: #krate::__private::Job = #krate::__private::Job::#mode(
                    #name, &[#(#texts),*], ::core::module_path!(), ::core::file!(), ::core::line!()
                ) #lease #on_stale #on_error;
                &PHASE
            }) #part
        }
    }

    fn part(&self, each: &FieldPath) -> TokenStream {
        let Self { span, krate, .. } = self;
        let element = Borrow { root: each.root.clone(), fields: each.fields.clone() };
        let value = key_part(krate, &borrow(&element));
        quote_spanned!(*span=> .part(#value))
    }

    /// What gives the body's `Result`.
    fn run(&self) -> TokenStream {
        let Self { phase, span, krate, call } = self;
        let classify = classify(phase.on_error);
        let classified = |name: &str, classified: &str| {
            Ident::new(if classify.is_none() { name } else { classified }, *span)
        };
        let body = self.body();
        if let Some(tx) = phase.tx {
            return self.steps(tx, &classified("tx_phase", "tx_phase_classified"), classify.as_ref(), &body);
        }
        match (phase.body, phase.probe()) {
            (Body::Async { .. }, None) => {
                let run = classified("phase_run", "phase_run_classified");
                quote_spanned!(*span=> #krate::__private::#run(#call, #classify #body).await)
            }
            (Body::Sync { .. }, None) => {
                let run = classified("run_sync", "run_sync_classified");
                quote_spanned!(*span=> #krate::__private::#run(#call, #classify #body))
            }
            (Body::Async { .. }, Some(probe)) => {
                let finish = classified("phase_finish", "phase_finish_classified");
                let unknown = local("__idem_unknown", *span);
                let probe = probe.asks(&unknown);
                quote_spanned! {*span=> {
                    let #unknown = #call.no_answer();
                    let #call = #krate::__private::admit(#call, #probe).await;
                    #krate::__private::#finish(#call, #classify #body).await
                }}
            }
            (Body::Sync { .. }, Some(probe)) => {
                let finish = classified("finish_sync", "finish_sync_classified");
                let probe = probe.asks_at_once();
                quote_spanned! {*span=> {
                    let #call = #krate::__private::admit_sync(#call, #probe);
                    #krate::__private::#finish(#call, #classify #body)
                }}
            }
        }
    }

    /// The three steps of a transactional phase. The body sees the transaction under the name it has. No lint wonders
    /// whether it looks, nor, for the `@ _`, that the name is bound again: with it the pattern is the expansion's.
    fn steps(
        &self,
        tx: &Ident,
        body: &Ident,
        classify: Option<&TokenStream>,
        future: &TokenStream,
    ) -> TokenStream {
        let Self { span, krate, call, .. } = self;
        let (guard, answer) = (local("__idem_guard", *span), local("__idem_answer", *span));
        let at = Span::call_site().located_at(tx.span());
        let guarded = {
            let krate = relocate(krate.clone(), at);
            // Where the user wrote it: so an unmet bound is found under the name.
            let lent = quote_spanned!(tx.span()=> &mut *#tx);
            quote_spanned!(at=> #krate::__private::tx_guard(#lent))
        };
        quote_spanned! {*span=> {
            let mut #guard = #guarded;
            match #krate::__private::tx_begin(#call, &mut #guard, || ()).await {
                ::core::ops::ControlFlow::Continue(#call) => {
                    let #call = {
                        let #tx @ _ = #guard.tx();
                        let _ = &#tx;
                        #krate::__private::#body(#call, #classify #future).await
                    };
                    #krate::__private::tx_end(#call, #guard).await
                }
                ::core::ops::ControlFlow::Break(#answer) => #answer,
            }
        }}
    }

    /// The body with its type: an `async` block has none of its own, and a closure's head could be one that lints want
    /// gone.
    fn body(&self) -> TokenStream {
        let Self { phase, span, .. } = self;
        match phase.body {
            Body::Async { keywords, block } => {
                let (none, returned) = (self.none(), local("__idem_ret", *span));
                let edge = quote_spanned! {*span=>
                    if let ::core::option::Option::Some(#returned) = #none() {
                        return #returned;
                    }
                };
                let inner = ours(block.clone());
                let block = braced(quote_spanned!(*span=> #edge #inner), block.span());
                quote_spanned!(*span=> #keywords #block)
            }
            Body::Sync { head, is_typed: true, rest } => quote!(#head #rest),
            Body::Sync { head, is_typed: false, rest } => {
                // In braces of its own it is the closure's as it stands; in more it would look needless.
                let rest: TokenStream = match syn::parse2::<Group>(rest.clone()) {
                    Ok(block) if block.delimiter() == Delimiter::Brace => rest.clone(),
                    _ => quote_spanned!(*span=> { #rest }),
                };
                quote_spanned!(*span=> #head -> ::core::result::Result<_, _> #rest)
            }
        }
    }

    /// What gives the body its type.
    fn none(&self) -> Ident {
        local("__idem_none", self.span)
    }
}
