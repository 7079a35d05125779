//! The parameter that holds the caller's transaction.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use syn::{Attribute, Error, FnArg, LitStr, Pat, PatType, Token, Type, ext::IdentExt, spanned::Spanned};

use crate::{
    args::{Args, Mode},
    errors::{Errors, did_you_mean, list},
    expand::relocate,
    function::{Flavor, Function, Parameter, find_impl, ungrouped},
    template::{Fault, Template},
};

/// What the expansion needs of it.
pub(crate) struct Transaction {
    pub(crate) ident: Ident,
    pub(crate) mutability: Option<Token![mut]>,
    /// What the user says of lints at the parameter, for the binding that the body has in its place.
    pub(crate) lints: Vec<Attribute>,
    /// What the reference is to.
    ty: Type,
}

/// The name where none is said.
const DEFAULT: &str = "tx";

impl Transaction {
    pub(crate) fn new(args: &Args, function: &Function, errors: &mut Errors) -> Option<Self> {
        let mode = args.mode()?;
        if mode != Mode::Transactional {
            if let Some(tx) = &args.tx {
                errors.at(tx.name, no_transaction(mode));
            }
            return None;
        }
        if matches!(function.flavor, Flavor::Sync) {
            errors.at(
                function.sig.ident.span(),
                format!(
                    "`{}` is not async, and a `transactional` job speaks to its database before and after its body\n\
                     make it an `async fn`",
                    function.sig.ident
                ),
            );
        }
        if args.tx.is_none() && args.gave("tx") {
            return None;
        }
        let Some(parameter) = find(args, function) else {
            missing(args, function, errors);
            return None;
        };
        check_type(parameter, errors);
        let Pat::Ident(name) = &*parameter.pat else { return None };
        if let Some(cfg) = parameter.attrs.iter().find(|attr| attr.path().is_ident("cfg")) {
            errors.push(Error::new_spanned(
                cfg,
                "the transaction can be compiled out, and the job with it has nowhere to run\nremove the `#[cfg]`",
            ));
        }
        let Type::Reference(reference) = ungrouped(&parameter.ty) else { return None };
        Some(Self {
            ident: name.ident.clone(),
            mutability: name.mutability,
            lints: parameter.attrs.iter().filter(|attr| is_lint(attr)).cloned().collect(),
            ty: Type::clone(&reference.elem),
        })
    }

    /// Refuses a key or a fingerprint that is made of the transaction.
    pub(crate) fn check_apart(&self, key: &LitStr, template: &Template, args: &Args, errors: &mut Errors) {
        let name = self.ident.unraw().to_string();
        let fact = format!(
            "`{name}` is the transaction that the job runs in, and says nothing of what the job is for"
        );
        for placeholder in template.placeholders.iter().filter(|placeholder| placeholder.root() == name) {
            let remedy = "write a parameter that tells one intent from another";
            let fault = Fault::say(placeholder.at.clone(), &*fact, remedy);
            errors.at(key.span(), fault.show(&key.value(), &[]));
        }
        let fingerprint = args.fingerprint.iter().flat_map(|fingerprint| &fingerprint.value);
        for path in fingerprint.filter(|path| path.root.unraw() == name) {
            errors.at(path.root.span(), format!("{fact}\nremove it from the fingerprint"));
        }
    }

    /// Has the parameter give way to a binding in the body of the same name: that one is the user's, and what lints
    /// say of the name they say of it. The parameter keeps its name, which no other token can mean.
    pub(crate) fn give_way(&self, function: &mut Function) {
        for input in &mut function.sig.inputs {
            if let FnArg::Typed(parameter) = input
                && let Pat::Ident(name) = &mut *parameter.pat
                && name.ident == self.ident
            {
                name.ident = self.parameter();
                name.mutability = None;
                parameter.attrs.retain(|attr| !attr.path().is_ident("expect"));
            }
        }
    }

    fn parameter(&self) -> Ident {
        let mut parameter = self.ident.clone();
        parameter.set_span(Span::mixed_site().located_at(self.ident.span()));
        parameter
    }

    /// `tx_guard::<Transaction<'_, Postgres>>(&mut *tx)`. The type is there for an unmet bound, which then stands
    /// under it.
    pub(crate) fn take(&self, krate: &TokenStream) -> TokenStream {
        let span = Span::call_site().located_at(self.ty.span());
        let krate = relocate(krate.clone(), span);
        let tx = self.parameter();
        let ty = find_impl(&self.ty).is_none().then(|| {
            let ty = &self.ty;
            quote_spanned!(span=> ::<#ty>)
        });
        quote_spanned!(span=> #krate::__private::tx_guard #ty (&mut *#tx))
    }
}

/// What to say of a `tx` in a mode that has none.
pub(crate) fn no_transaction(mode: Mode) -> String {
    format!(
        "`tx` belongs to `transactional`: `{}` writes over connections of its own\n\
         remove it, or write `mode = \"transactional\"`",
        mode.word()
    )
}

/// `#[allow(…)]` and its like, perhaps under a condition.
fn is_lint(attr: &Attribute) -> bool {
    ["allow", "expect", "warn", "deny", "forbid", "cfg_attr"].iter().any(|name| attr.path().is_ident(name))
}

fn wanted(args: &Args) -> String {
    args.tx.as_ref().map_or_else(|| DEFAULT.to_owned(), |tx| tx.value.unraw().to_string())
}

fn typed(function: &Function) -> impl Iterator<Item = &PatType> {
    function.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => Some(typed),
        FnArg::Receiver(_) => None,
    })
}

fn name_of(parameter: &PatType) -> Option<String> {
    match &*parameter.pat {
        Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => {
            Some(name.ident.unraw().to_string())
        }
        _ => None,
    }
}

fn find<'a>(args: &Args, function: &'a Function) -> Option<&'a PatType> {
    let wanted = wanted(args);
    typed(function).find(|parameter| name_of(parameter).as_deref() == Some(&*wanted))
}

fn missing(args: &Args, function: &Function, errors: &mut Errors) {
    let (job, wanted) = (&function.sig.ident, wanted(args));
    let parameters = function.parameters();
    if let Some(bound) = parameters.iter().find(|parameter| parameter.name == wanted) {
        errors.push(Error::new_spanned(
            bound.pattern(),
            format!(
                "`{wanted}` is bound by a pattern, and the transaction is a whole parameter of `{job}`\n\
                 write {}",
                example(&wanted)
            ),
        ));
        return;
    }
    let names: Vec<String> = typed(function).filter_map(name_of).collect();
    let names = || names.iter().map(String::as_str);
    let mut message = if args.tx.is_some() {
        let near = did_you_mean(&wanted, names(), "");
        format!("`{wanted}` is not a parameter of `{job}`{near}\nthe parameters are {}", list(names()))
    } else {
        let candidate = typed(function).filter(|parameter| is_exclusive(&parameter.ty)).find_map(name_of);
        let remedy = candidate.map_or_else(
            || format!("add {}", example(DEFAULT)),
            |name| format!("if that is `{name}`, write `tx = {name}`"),
        );
        format!(
            "a `transactional` job runs in its caller's transaction, and `{job}` has no parameter `{wanted}`\n{remedy}"
        )
    };
    if parameters.iter().any(Parameter::is_made_up) {
        message
            .push_str("\na destructured parameter has no name here: name it, and take it apart in the body");
    }
    let at = args.tx.as_ref().map(|tx| tx.span).or(args.mode.as_ref().map(|mode| mode.span));
    errors.at(at.unwrap_or_else(Span::call_site), message);
}

fn check_type(parameter: &PatType, errors: &mut Errors) {
    if !is_exclusive(&parameter.ty) {
        let name = name_of(parameter).unwrap_or_default();
        errors.push(Error::new_spanned(
            &parameter.ty,
            format!(
                "`{name}` is not a `&mut`: the job borrows its caller's transaction, and the caller commits it\n\
                 write {}",
                example(&name)
            ),
        ));
    }
}

/// How the parameter is written.
fn example(name: &str) -> String {
    format!("`{name}: &mut sqlx::Transaction<'_, sqlx::Postgres>`, or that of another database")
}

fn is_exclusive(ty: &Type) -> bool {
    matches!(ungrouped(ty), Type::Reference(reference) if reference.mutability.is_some())
}
