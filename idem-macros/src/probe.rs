//! `on_stale = probe(path)`: the function that says whether the effect of an execution that stopped half way happened.

use proc_macro2::Span;
use syn::{ExprPath, spanned::Spanned};

use crate::{
    args::{Args, OnStale},
    function::{Function, ParameterKind},
    key_fn::named_parameters,
    plan::Borrow,
    template::Template,
};

/// Takes the receiver, if there is one, and what the template names, in the function's order, by shared reference.
pub(crate) struct Probe {
    pub(crate) path: ExprPath,
    /// Every token of the call is located here.
    pub(crate) span: Span,
    pub(crate) arguments: Vec<Borrow>,
}

impl Probe {
    pub(crate) fn new(args: &Args, function: &Function, template: &Template) -> Option<Self> {
        let OnStale::Probe(path) = &args.on_stale.as_ref()?.value else { return None };
        let span = Span::call_site().located_at(path.span());
        let parameters = function.parameters();
        let receiver = parameters
            .into_iter()
            .find(|parameter| matches!(parameter.kind, ParameterKind::Receiver))
            .map(|parameter| parameter.ident);
        let named = named_parameters(function, template).map(|(ident, _)| ident.clone());
        let arguments =
            receiver.into_iter().chain(named).map(|ident| Borrow::new(&ident, Vec::new(), span)).collect();
        Some(Self { path: path.clone(), span, arguments })
    }
}
