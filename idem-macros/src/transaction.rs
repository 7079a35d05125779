//! The parameter that holds the caller's transaction.

use proc_macro2::{Ident, Span};
use syn::{FnArg, Pat, PatType, Type, ext::IdentExt, spanned::Spanned};

use crate::{
    args::{Args, Mode},
    errors::{Errors, did_you_mean, list},
    function::{Flavor, Function, ungrouped},
};

/// What the expansion needs of it.
pub(crate) struct Transaction {
    pub(crate) ident: Ident,
    pub(crate) is_mut: bool,
}

/// The name where none is said.
const DEFAULT: &str = "tx";

impl Transaction {
    pub(crate) fn new(args: &Args, function: &Function, errors: &mut Errors) -> Option<Self> {
        let mode = args.mode()?;
        if mode != Mode::Transactional {
            if let Some(tx) = &args.tx {
                errors.at(
                    tx.name,
                    format!(
                        "`tx` belongs to `transactional`: `{}` writes over connections of its own\n\
                         remove it, or write `mode = \"transactional\"`",
                        mode.word()
                    ),
                );
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
            errors.push(syn::Error::new_spanned(
                cfg,
                "the transaction can be compiled out, and the job with it has nowhere to run\nremove the `#[cfg]`",
            ));
        }
        Some(Self { ident: name.ident.clone(), is_mut: name.mutability.is_some() })
    }
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
    let job = &function.sig.ident;
    let names: Vec<String> = typed(function).filter_map(name_of).collect();
    let names = || names.iter().map(String::as_str);
    if let Some(tx) = &args.tx {
        let wanted = tx.value.unraw().to_string();
        let near = did_you_mean(&wanted, names(), "");
        errors.at(
            tx.span,
            format!("`{wanted}` is not a parameter of `{job}`{near}\nthe parameters are {}", list(names())),
        );
        return;
    }
    let candidate = typed(function).filter(|parameter| is_exclusive(&parameter.ty)).find_map(name_of);
    let remedy = candidate.map_or_else(
        || "add `tx: &mut sqlx::Transaction<'_, sqlx::Postgres>`, or that of another database".to_owned(),
        |name| format!("if that is `{name}`, write `tx = {name}`"),
    );
    errors.at(
        args.mode.as_ref().map_or_else(Span::call_site, |mode| mode.span),
        format!("a `transactional` job runs in its caller's transaction, and `{job}` has no parameter `tx`\n{remedy}"),
    );
}

fn check_type(parameter: &PatType, errors: &mut Errors) {
    if !is_exclusive(&parameter.ty) {
        let name = name_of(parameter).unwrap_or_default();
        errors.at(
            parameter.ty.span(),
            format!(
                "`{name}` is not a `&mut`: the job borrows its caller's transaction, and the caller commits it\n\
                 write `{name}: &mut sqlx::Transaction<'_, sqlx::Postgres>`, or that of another database"
            ),
        );
    }
}

fn is_exclusive(ty: &Type) -> bool {
    matches!(ungrouped(ty), Type::Reference(reference) if reference.mutability.is_some())
}
