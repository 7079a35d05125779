//! The function itself: what cannot be a job, and what its signature hides from the key.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Error, GenericArgument, GenericParam, PathArguments, Signature, Type, TypeParamBound, WherePredicate,
};

use crate::{
    args::Args,
    errors::Errors,
    function::{Function, Parameter, ParameterKind, borrowed_value, find_impl, mentions},
};

/// One job has one key.
pub(super) fn check_single(function: &Function, errors: &mut Errors) {
    for attr in function.attributes_named("idempotent") {
        errors.push(Error::new_spanned(
            attr,
            "a second `#[idempotent]` on one function\n\
             one job has one key; call a second function where two are meant",
        ));
    }
}

/// The body runs in a closure, to which no caller's location comes.
pub(super) fn check_track_caller(function: &Function, errors: &mut Errors) {
    for attr in function.attributes_named("track_caller") {
        errors.push(Error::new_spanned(
            attr,
            "`#[track_caller]` cannot reach the body, which runs behind the claim\n\
             pass the location as a parameter, or remove the attribute",
        ));
    }
}

/// A store is reached at run time.
pub(super) fn check_const(function: &Function, errors: &mut Errors) {
    if let Some(constness) = &function.sig.constness {
        errors.at(
            constness.span,
            "a `const fn` cannot be idempotent: its calls reach a store, at run time\nremove `const`",
        );
    }
}

/// Foreign code takes no `Result`, and passes what no key can name.
pub(super) fn check_foreign(function: &Function, errors: &mut Errors) {
    let Signature { abi, variadic, .. } = &function.sig;
    let (at, fact): (TokenStream, _) = match (variadic, abi) {
        (Some(variadic), _) => (
            variadic.to_token_stream(),
            "a variadic function cannot be idempotent: its further arguments have no names and no types",
        ),
        (None, Some(abi)) => (
            abi.to_token_stream(),
            "an `extern` function cannot be idempotent: foreign code cannot take its `Result`",
        ),
        (None, None) => return,
    };
    errors
        .push(Error::new_spanned(at, format!("{fact}\nannotate a Rust function and call it from this one")));
}

/// A call that is refused answers with an `Err`.
pub(super) fn check_output(function: &Function, errors: &mut Errors) {
    let job = &function.sig.ident;
    if function.returns_nothing() {
        errors.at(
            job.span(),
            format!(
                "`{job}` returns nothing, and an `#[idempotent]` function returns `Result<T, E>`: \
                 a call that is refused is an `Err`\nwrite `-> Result<(), E>` with `E: From<idem_runtime::Error>`"
            ),
        );
    } else if let Type::Never(never) = &function.output {
        errors.push(Error::new_spanned(
            never,
            "an `#[idempotent]` function returns `Result<T, E>`, and this one never returns\n\
             a job that does not end has nothing to record",
        ));
    }
}

/// A closure cannot declare `impl Trait` as its result, and no store can read it back.
pub(super) fn check_named_output(function: &Function, errors: &mut Errors) {
    let Some(at) = find_impl(&function.output) else { return };
    let is_future = matches!(&function.output, Type::ImplTrait(ty)
        if ty.bounds.iter().any(|bound| bound.to_token_stream().to_string().contains("Future")));
    let message = if is_future {
        "`impl Future` is not a `Result` yet: what the job is to record comes only when it is awaited\n\
         write `async fn`, or return `Pin<Box<dyn Future<Output = Result<T, E>> + Send>>`"
    } else {
        "`impl Trait` cannot be stored and read back, so an `#[idempotent]` function cannot return it\n\
         name the type, or box it"
    };
    errors.at(at, message);
}

/// What a job waits for is for one thread at a time to ask.
pub(super) fn check_future(function: &Function, errors: &mut Errors) {
    if let Some(sync) = function.sync_bound() {
        errors.push(Error::new_spanned(
            sync,
            "the future of a job is not `Sync`: it holds what it waits for\n\
             remove `Sync`; to be spawned a future needs `Send` alone",
        ));
    }
}

/// A borrowed value is refused by its syntax: what rustc says of its `Deserialize` helps nobody.
pub(super) fn check_owned(args: &Args, function: &Function, errors: &mut Errors) {
    if args.replay.as_ref().is_some_and(|replay| !replay.value) {
        return;
    }
    if let Some(span) = borrowed_value(&function.output) {
        errors.at(
            span,
            "a borrowed result cannot be stored and read back\n\
             return an owned value, or write `replay = false`: repeats then get `Error::AlreadyCompleted`",
        );
    }
}

/// The sibling of `key_fn` needs a place and a name.
pub(super) fn check_key_fn(args: &Args, function: &Function, errors: &mut Errors) {
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

/// Refuses what a key or a fingerprint cannot name.
pub(super) fn check_nameable(parameter: &Parameter<'_>, function: &Function, errors: &mut Errors) {
    let name = &parameter.name;
    match parameter.kind {
        ParameterKind::Named | ParameterKind::Receiver => {}
        ParameterKind::Destructured(pattern) => errors.push(Error::new_spanned(
            pattern,
            format!(
                "`{name}` is bound inside a pattern, and keys and fingerprints are made of whole parameters of `{}` and their fields\n\
                 give the parameter a name of its own, write that instead, and take it apart in the body",
                function.sig.ident
            ),
        )),
        ParameterKind::Conditional(cfg) => errors.push(Error::new_spanned(
            cfg,
            format!("`{name}` can be compiled out, and a key that changes with the build is no identity\nremove the `#[cfg]`, or leave `{name}` out"),
        )),
    }
}

/// Each type and const parameter must show in a parameter, or calls that differ in it alone would share a key.
pub(super) fn check_generics(function: &Function, errors: &mut Errors) {
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
