//! Writes the expansion: one `let` that names the job and borrows what its key needs, one call that takes the body.
//!
//! Total: whatever can be wrong was found by the plan.

mod policy;

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, FnArg, Pat, PatIdent, Signature, ext::IdentExt, spanned::Spanned};

pub(crate) use self::policy::Setters;
use crate::{
    args::{Arg, Args, Mode, OnError, Ttl},
    function::Flavor,
    plan::{Borrow, DEFAULT_WAIT, Plan},
    probe::Probe,
    transaction::Transaction,
};

pub(crate) fn expand(plan: &Plan) -> TokenStream {
    let function = &plan.function;
    let (attrs, vis, sig) = (&function.attrs, &function.vis, &function.sig);
    let tokens = Tokens::new(plan);
    let span = tokens.span;
    let contract = function.has_docs().then_some(&plan.contract);
    let contract = contract.iter().map(|text| {
        let text = format!(" {text}");
        quote_spanned!(span=> #[doc = ""] #[doc = #text])
    });
    let (head, tail) = (tokens.head(), tokens.tail());
    let body = match function.flavor {
        // Between the user's own braces: a function that ends where the user wrote it is the user's to lints. Some want
        // a `return`, and those that do not look away from an expansion.
        Flavor::Async | Flavor::Sync => braced(quote_spanned!(span=> #head #tail), function.braces),
        Flavor::Boxed(_) => quote_spanned!(span=> { ::std::boxed::Box::pin(async move { #head #tail }) }),
    };
    let key_fn = tokens.key_fn();
    quote! {
        #(#attrs)*
        #(#contract)*
        #vis #sig #body
        #key_fn
    }
}

/// The plan, beside the span of every token of the calls: located at the user's return type, where an unmet bound
/// belongs, and in the expansion's context, where lints are silent.
struct Tokens<'a> {
    plan: &'a Plan,
    span: Span,
    krate: TokenStream,
    call: Ident,
}

impl<'a> Tokens<'a> {
    fn new(plan: &'a Plan) -> Self {
        let span = Span::call_site().located_at(plan.function.output.span());
        let call = local("__idem_call", span);
        Self { plan, span, krate: relocate(plan.krate.to_token_stream(), span), call }
    }

    /// `let __idem_call = stored::<Ret>(Ticket::new({ static JOB … &JOB }).part(…)…)…;`
    fn head(&self) -> TokenStream {
        let Self { plan, span, krate, call } = self;
        let output = &plan.function.output;
        let constructor = Ident::new(if plan.stores() { "stored" } else { "unstored" }, *span);
        let (job, describe) = (self.job(), self.describe());
        let parts = plan.parts.iter().map(|part| {
            let value = key_part(krate, &borrow(part));
            quote_spanned!(*span=> .part(#value))
        });
        let fingerprint = plan.fingerprint.iter().map(|part| {
            let value = borrow(part);
            quote_spanned!(*span=> .fingerprint(#value))
        });
        let idem = plan.args.idem.iter().map(|idem| {
            let expr = &idem.value;
            let at = Span::call_site().located_at(expr.span());
            // Through `*`, which tells the expression nothing of what is wanted: a block or an `if` that gives `&Idem`
            // would be asked for an `Idem`.
            let borrowed = quote_spanned!(at=> &*&(#expr));
            quote_spanned!(*span=> .idem(#borrowed))
        });
        let guarded = plan.transaction.iter().map(|transaction| {
            let (guard, taken) = (self.guard(), transaction.take(krate));
            quote_spanned!(*span=> let mut #guard = #taken;)
        });
        quote_spanned! {*span=>
            #(#guarded)*
            let #call = #krate::__private::#constructor::<#output>(
                #krate::__private::Ticket::new({
                    static JOB: #krate::__private::Job = #job;
                    #krate::__private::inventory::submit! { #krate::__private::JobRef(&JOB) }
                    &JOB
                })
                #(#parts)* #(#fingerprint)* #(#idem)*
            )#describe;
        }
    }

    /// The error's text for the row, where the error has one. Nothing is asked of `E`: the method that wants a
    /// `Display` gives way to another where there is none.
    fn describe(&self) -> TokenStream {
        let Self { span, krate, .. } = self;
        let error = local("__idem_error", *span);
        quote_spanned! {*span=>
            .describe(|#error| #krate::__private::Describe(#error).idem_text())
        }
    }

    /// `Job::lock_first("charge", &["billing:", ""], …).stale_after(2)`: what the user said, and nothing else.
    fn job(&self) -> TokenStream {
        let Self { plan, span, krate, .. } = self;
        let mode = Ident::new(plan.mode.word(), *span);
        let name = plan.function.sig.ident.unraw().to_string();
        let texts = &plan.texts;
        let setters = self.setters(&plan.args);
        quote_spanned! {*span=>
            #krate::__private::Job::#mode(
                #name, &[#(#texts),*], ::core::module_path!(), ::core::file!(), ::core::line!()
            ) #setters
        }
    }

    fn setters(&self, args: &Args) -> TokenStream {
        let Self { plan, span, krate, .. } = self;
        let policies = Setters { span: *span, krate };
        let mut setters = TokenStream::new();
        if let Some(label) = &args.label {
            let label = &label.value;
            setters.extend(quote_spanned!(*span=> .label(#label)));
        }
        setters.extend(policies.lease(args.stale_after.as_ref()));
        if args.heartbeat.as_ref().is_some_and(|heartbeat| !heartbeat.value) {
            setters.extend(quote_spanned!(*span=> .without_heartbeat()));
        }
        setters.extend(policies.on_stale(args.on_stale.as_ref()));
        if let Some(limit) = &args.max_takeovers {
            let limit = Literal::u32_unsuffixed(limit.value);
            setters.extend(quote_spanned!(*span=> .max_takeovers(#limit)));
        }
        setters.extend(policies.on_error(args.on_error.as_ref()));
        if args.waits() {
            if args.on_busy.is_some() || args.wait_for.is_some() {
                let seconds = args.wait_for.as_ref().map_or(DEFAULT_WAIT, |wait| wait.value.seconds);
                let seconds = Literal::u64_unsuffixed(seconds);
                setters.extend(quote_spanned!(*span=> .wait(#seconds)));
            }
        } else if plan.mode == Mode::Transactional {
            setters.extend(quote_spanned!(*span=> .without_wait()));
        }
        match args.ttl.as_ref().map(|ttl| &ttl.value) {
            Some(Ttl::For(ttl)) => {
                let seconds = Literal::u64_unsuffixed(ttl.seconds);
                setters.extend(quote_spanned!(*span=> .ttl(#seconds)));
            }
            Some(Ttl::Forever) => setters.extend(quote_spanned!(*span=> .ttl_forever())),
            None => {}
        }
        if plan.is_keyed_by_self() {
            setters.extend(quote_spanned!(*span=> .keyed_by_self()));
        }
        if plan.phased {
            setters.extend(quote_spanned!(*span=> .phased()));
        }
        if !args.allow_overlap.is_empty() {
            let paths = args
                .allow_overlap
                .iter()
                .map(|path| path.to_token_stream().to_string().replace(char::is_whitespace, ""));
            setters.extend(quote_spanned!(*span=> .allow_overlap(&[#(#paths),*])));
        }
        setters
    }

    /// `return run(__idem_call, async move || -> Ret { … }).await;`, or its sync and classified sisters, or those of
    /// a call that was admitted before.
    fn tail(&self) -> TokenStream {
        let Self { plan, span, krate, call } = self;
        let output = &plan.function.output;
        let body = &plan.function.body;
        let classify = classify(plan.args.on_error.as_ref());
        if let Some(transaction) = &plan.transaction {
            return self.steps(transaction, classify.as_ref());
        }
        let is_sync = matches!(plan.function.flavor, Flavor::Sync);
        let name = match (&plan.probe, is_sync, classify.is_none()) {
            (None, false, true) => "run",
            (None, false, false) => "run_classified",
            (None, true, true) => "run_sync",
            (None, true, false) => "run_sync_classified",
            (Some(_), false, true) => "finish",
            (Some(_), false, false) => "finish_classified",
            (Some(_), true, true) => "finish_sync",
            (Some(_), true, false) => "finish_sync_classified",
        };
        let run = Ident::new(name, *span);
        let admitted = plan.probe.as_ref().map(|probe| self.admitted(probe, is_sync));
        if is_sync {
            let whole = self.whole();
            let body = if whole.is_empty() {
                braced(body.stream(), plan.function.braces)
            } else {
                braced(quote_spanned!(*span=> #whole #body), plan.function.braces)
            };
            let closure = quote_spanned!(plan.function.braces=> move || -> #output #body);
            return quote_spanned!(*span=> #admitted return #krate::__private::#run(#call, #classify #closure););
        }
        let closure = self.closure();
        quote_spanned!(*span=> #admitted return #krate::__private::#run(#call, #classify #closure).await;)
    }

    /// `let __idem_call = admit(__idem_call, async || path(&self, &user_id).await).await;`: a call of its own, because
    /// the body's closure takes what the probe borrows. An edge makes the answer's type an expectation, as for a body.
    fn admitted(&self, probe: &Probe, is_sync: bool) -> TokenStream {
        let Self { span, krate, call, .. } = self;
        let Probe { path, span: at, arguments } = probe;
        let arguments = arguments.iter().map(borrow);
        let asked = quote_spanned!(*at=> #path(#(#arguments),*));
        if is_sync {
            let closure = quote_spanned!(*at=> || #asked);
            return quote_spanned!(*span=> let #call = #krate::__private::admit_sync(#call, #closure););
        }
        let (none, answer) = (local("__idem_none", *at), local("__idem_answer", *at));
        let closure = quote_spanned! {*at=>
            async || {
                if let ::core::option::Option::Some(#answer) = #none() {
                    return #answer;
                }
                #asked.await
            }
        };
        quote_spanned! {*span=>
            let #none = #call.no_answer();
            let #call = #krate::__private::admit(#call, #closure).await;
        }
    }

    /// The three steps of a transactional job: the transaction cannot be a parameter of the body's closure, whose
    /// future would stop being `Send`.
    fn steps(&self, transaction: &Transaction, classify: Option<&TokenStream>) -> TokenStream {
        let Self { span, krate, call, .. } = self;
        let (guard, answer) = (self.guard(), local("__idem_answer", *span));
        let Transaction { ident: tx, mutability, lints, .. } = transaction;
        let body = Ident::new(if classify.is_none() { "tx_body" } else { "tx_body_classified" }, *span);
        let closure = self.closure();
        quote_spanned! {*span=>
            let #call = match #krate::__private::tx_begin(#call, &mut #guard, || ()).await {
                ::core::ops::ControlFlow::Continue(#answer) => #answer,
                ::core::ops::ControlFlow::Break(#answer) => return #answer,
            };
            let #call = {
                #(#lints)* let #mutability #tx = #guard.tx();
                #krate::__private::#body(#call, #classify #closure).await
            };
            return #krate::__private::tx_end(#call, #guard).await;
        }
    }

    /// What holds the transaction of a transactional job.
    fn guard(&self) -> Ident {
        local("__idem_guard", self.span)
    }

    /// `async move || -> Ret { … }` around the body.
    fn closure(&self) -> TokenStream {
        let Self { plan, span, krate, .. } = self;
        let output = &plan.function.output;
        let body = &plan.function.body;
        let body = match &plan.function.flavor {
            Flavor::Boxed(future) => {
                quote_spanned!(*span=> #krate::__private::built(move || -> #future #body).await)
            }
            Flavor::Async | Flavor::Sync => body.to_token_stream(),
        };
        let (whole, edge) = (self.whole(), self.edge());
        let inside = braced(quote_spanned!(*span=> #whole #edge #body), plan.function.braces);
        quote_spanned!(plan.function.braces=> async move || -> #output #inside)
    }

    /// Makes the declared type an expectation for the body's tail and `return`s, as it is in an `async fn`; an
    /// async closure's own is none.
    fn edge(&self) -> TokenStream {
        let Self { plan, span, krate, .. } = self;
        let output = &plan.function.output;
        let returned = local("__idem_ret", *span);
        quote_spanned! {*span=>
            if let ::core::option::Option::Some(#returned) = #krate::__private::none::<#output>() {
                return #returned;
            }
        }
    }

    /// Takes each `mut` parameter whose fields the body uses into the closure as a whole. By itself the closure takes
    /// those fields, and warns of one that is set before it is read, which a function does not.
    fn whole(&self) -> TokenStream {
        let parameters = self.plan.function.sig.inputs.iter().filter_map(|input| {
            let FnArg::Typed(parameter) = input else { return None };
            let Pat::Ident(PatIdent { by_ref: None, mutability: Some(_), ident, .. }) = &*parameter.pat
            else {
                return None;
            };
            if !reaches_into(self.plan.function.body.stream(), ident) {
                return None;
            }
            let cfgs = parameter.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
            let span = self.span;
            Some(quote_spanned!(span=> #(#cfgs)* let _ = &#ident;))
        });
        parameters.collect()
    }

    fn key_fn(&self) -> Option<TokenStream> {
        let Self { plan, .. } = self;
        let key_fn = plan.key_fn.as_ref()?;
        let span = key_fn.span;
        let krate = relocate(plan.krate.to_token_stream(), span);
        let Signature { ident: job, .. } = &plan.function.sig;
        let cfgs: Vec<&Attribute> =
            plan.function.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect();
        let signature = key_fn.signature(job, &plan.function.vis, &cfgs, &krate);
        let texts = &plan.texts;
        let parts = plan.parts.iter().map(|part| {
            let value = relocate(borrow(part), span);
            quote_spanned!(span=> .part(#krate::__private::Part(#value).idem_again()))
        });
        Some(quote_spanned! {span=>
            #signature {
                #krate::__private::render(&[#(#texts),*]) #(#parts)* .finish()
            }
        })
    }
}

/// `|e: &_| path(e),` where a function is named that judges errors.
pub(crate) fn classify(on_error: Option<&Arg<OnError>>) -> Option<TokenStream> {
    let OnError::Classify(path) = &on_error?.value else { return None };
    let at = Span::call_site().located_at(path.span());
    let error = local("__idem_error", at);
    Some(quote_spanned!(at=> |#error: &_| #path(#error),))
}

/// A block with these braces.
pub(crate) fn braced(inside: TokenStream, braces: Span) -> TokenStream {
    let mut block = Group::new(Delimiter::Brace, inside);
    block.set_span(braces);
    TokenTree::Group(block).into()
}

/// A name that no name of the user's can mean.
pub(crate) fn local(name: &str, at: Span) -> Ident {
    Ident::new(name, Span::mixed_site().located_at(at))
}

/// `&order.customer.id`, all of it where the user wrote the name.
pub(crate) fn borrow(part: &Borrow) -> TokenStream {
    let Borrow { root, fields } = part;
    let at = Span::call_site().located_at(root.span());
    quote_spanned!(at=> & #root #(.#fields)*)
}

/// `match &user_id { part => Part(part).idem_of(part) }`, where the value stands: a type that cannot be in a key has an
/// `idem_of` of its own, which says so.
pub(crate) fn key_part(krate: &TokenStream, value: &TokenStream) -> TokenStream {
    let at = value.clone().into_iter().next().map_or_else(Span::call_site, |token| token.span());
    let part = local("__idem_part", at);
    quote_spanned!(at=> match #value { #part => #krate::__private::Part(#part).idem_of(#part) })
}

/// The same tokens at one span, but for `$crate`, whose context is its meaning.
pub(crate) fn relocate(tokens: TokenStream, span: Span) -> TokenStream {
    let move_to = |mut token: TokenTree| {
        match &mut token {
            TokenTree::Group(group) => {
                let mut moved = Group::new(group.delimiter(), relocate(group.stream(), span));
                moved.set_span(span);
                *group = moved;
            }
            TokenTree::Ident(ident) if ident == "$crate" => ident.set_span(ident.span().located_at(span)),
            token => token.set_span(span),
        }
        token
    };
    tokens.into_iter().map(move_to).collect()
}

/// Whether tokens hold `ident.`, at any depth.
fn reaches_into(tokens: TokenStream, ident: &Ident) -> bool {
    let mut named = false;
    tokens.into_iter().any(|token| {
        let after = std::mem::take(&mut named);
        match token {
            TokenTree::Group(group) => reaches_into(group.stream(), ident),
            TokenTree::Ident(found) => {
                named = found == *ident;
                false
            }
            TokenTree::Punct(punct) => after && punct.as_char() == '.',
            TokenTree::Literal(_) => false,
        }
    })
}

#[cfg(test)]
mod tests;
