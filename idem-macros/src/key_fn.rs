//! `key_fn = name`: the sibling function that renders a job's key without running it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Attribute, FnArg, GenericParam, Generics, Lifetime, Pat, Type, TypeReference, Visibility, WherePredicate,
    ext::IdentExt,
};

use crate::{
    function::{Function, mentions},
    template::Template,
};

/// Takes what the template names, in the function's order, by shared reference.
pub(crate) struct KeyFn {
    pub(crate) name: Ident,
    /// Every token of the function's own text is located here.
    pub(crate) span: Span,
    generics: Generics,
    receiver: bool,
    params: Vec<(Ident, TokenStream)>,
}

impl KeyFn {
    pub(crate) fn new(name: &Ident, function: &Function, template: &Template) -> Self {
        let span = Span::call_site().located_at(name.span());
        let mut types = Vec::new();
        let mut params = Vec::new();
        for (ident, ty) in named_parameters(function, template) {
            let mut ident = ident.clone();
            ident.set_span(span);
            types.push(ty);
            params.push((ident, by_reference(ty, span)));
        }
        let mut generics = kept(&function.sig.generics, &types);
        for param in &mut generics.params {
            if let GenericParam::Lifetime(param) = param {
                // What a lint says of it is for the job's own: here it may be used less often.
                let span = Span::call_site().located_at(param.lifetime.span());
                param.lifetime = Lifetime::new(&param.lifetime.to_string(), span);
            }
        }
        Self { name: name.clone(), span, generics, receiver: template.names("self"), params }
    }

    /// The function's head: everything before its body.
    pub(crate) fn signature(
        &self,
        job: &Ident,
        vis: &Visibility,
        cfgs: &[&Attribute],
        krate: &TokenStream,
    ) -> TokenStream {
        let Self { name, span, generics, receiver, params } = self;
        let where_clause = &generics.where_clause;
        let receiver = receiver.then(|| quote_spanned!(*span=> &self,));
        let params = params.iter().map(|(ident, ty)| quote_spanned!(*span=> #ident: #ty,));
        let about =
            format!(" The key that `{}` has for these arguments; nothing is run or looked up.", job.unraw());
        let failure = " If a value cannot stand in a key.";
        quote_spanned! {*span=>
            #(#cfgs)*
            #[doc = #about]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = #failure]
            #vis fn #name #generics (#receiver #(#params)*) -> ::core::result::Result<#krate::Key, #krate::Error>
            #where_clause
        }
    }
}

/// The parameters that the template names, once each, in the function's order.
pub(crate) fn named_parameters<'a>(
    function: &'a Function,
    template: &'a Template,
) -> impl Iterator<Item = (&'a Ident, &'a Type)> {
    function.sig.inputs.iter().filter_map(|input| {
        let FnArg::Typed(param) = input else { return None };
        let Pat::Ident(pat) = &*param.pat else { return None };
        template.names(&pat.ident.unraw().to_string()).then_some((&pat.ident, &*param.ty))
    })
}

fn by_reference(ty: &Type, span: Span) -> TokenStream {
    match ty {
        Type::Group(group) => by_reference(&group.elem, span),
        Type::Paren(paren) => by_reference(&paren.elem, span),
        Type::Reference(reference) => {
            TypeReference { mutability: None, ..reference.clone() }.into_token_stream()
        }
        Type::ImplTrait(_) => quote_spanned!(span=> &(#ty)),
        _ => quote_spanned!(span=> &#ty),
    }
}

/// The generics that the types mention, then those that the bounds of these mention. Any other could not be
/// inferred; a predicate on one goes with it.
fn kept(generics: &Generics, types: &[&Type]) -> Generics {
    let predicates: Vec<&WherePredicate> =
        generics.where_clause.iter().flat_map(|clause| &clause.predicates).collect();
    let mut mentioned: TokenStream = types.iter().map(ToTokens::to_token_stream).collect();
    let mut kept = vec![false; generics.params.len()];
    loop {
        let before = kept.clone();
        for (param, kept) in generics.params.iter().zip(&mut kept) {
            if !*kept && mentions(mentioned.clone(), param) {
                *kept = true;
                mentioned.extend(quote!(#param ;));
                let on_it = |predicate: &&&WherePredicate| mentions(bounded(predicate), param);
                mentioned.extend(predicates.iter().filter(on_it).map(ToTokens::to_token_stream));
            }
        }
        if kept == before {
            break;
        }
    }
    let (keep, drop): (Vec<_>, Vec<_>) = generics.params.iter().zip(kept).partition(|(_, kept)| *kept);
    let mut result = generics.clone();
    result.params = keep.into_iter().map(|(param, _)| param.clone()).collect();
    if let Some(clause) = &mut result.where_clause {
        let survives = |predicate: &WherePredicate| {
            !drop.iter().any(|(param, _)| mentions(predicate.to_token_stream(), param))
        };
        clause.predicates = predicates.into_iter().filter(|predicate| survives(predicate)).cloned().collect();
    }
    result
}

/// What a predicate is about: the left of its `:`.
fn bounded(predicate: &WherePredicate) -> TokenStream {
    match predicate {
        WherePredicate::Type(predicate) => predicate.bounded_ty.to_token_stream(),
        WherePredicate::Lifetime(predicate) => predicate.lifetime.to_token_stream(),
        _ => TokenStream::new(),
    }
}
