//! `on_stale = probe(async || …)`: what asks about the effect of a phase that stopped half way.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::{
    Expr, ExprClosure, ExprPath, Path, ReturnType, Token, parenthesized, parse::ParseStream, spanned::Spanned,
};

use super::body::{ours, parameterless};
use crate::{
    args::value::{Asks, quoted},
    expand::local,
};

/// A closure, or the path of a function, that is called without arguments.
#[derive(Clone)]
pub(super) enum Probe {
    Path(ExprPath),
    /// One whose answer's type is left to the phase.
    Async(ExprClosure),
    /// One that is not `async`, or says what it answers, or is half typed.
    Closure {
        is_async: bool,
        written: TokenStream,
    },
}

impl Probe {
    /// Whether it is an `async` closure; a path does not tell.
    pub(super) fn is_async(&self) -> Option<bool> {
        match self {
            Self::Path(_) => None,
            Self::Async(_) => Some(true),
            Self::Closure { is_async, .. } => Some(*is_async),
        }
    }

    pub(super) fn written(&self) -> TokenStream {
        match self {
            Self::Path(path) => path.to_token_stream(),
            Self::Async(closure) => closure.to_token_stream(),
            Self::Closure { written, .. } => written.clone(),
        }
    }

    /// The closure that is called. An edge makes the answer's type an expectation, as for the attribute's: `unknown`
    /// gives one that there is not.
    pub(super) fn asks(&self, unknown: &Ident) -> TokenStream {
        let edge = |span: Span| {
            let answer = local("__idem_answer", span);
            quote_spanned! {span=>
                if let ::core::option::Option::Some(#answer) = #unknown() {
                    return #answer;
                }
            }
        };
        match self {
            Self::Path(path) => {
                let span = Span::call_site().located_at(path.span());
                let edge = edge(span);
                quote_spanned!(span=> async || { #edge #path().await })
            }
            Self::Async(closure) => {
                let ExprClosure { attrs, asyncness, capture, body, .. } = closure;
                let span = Span::call_site().located_at(body.span());
                let edge = edge(span);
                let body = match &**body {
                    Expr::Block(_) => body.to_token_stream().into_iter().map(outermost).collect(),
                    body => body.to_token_stream(),
                };
                quote_spanned!(span=> #(#attrs)* #asyncness #capture || { #edge #body })
            }
            Self::Closure { written, .. } => written.clone(),
        }
    }

    /// The same where nothing waits.
    pub(super) fn asks_at_once(&self) -> TokenStream {
        match self {
            Self::Path(path) => {
                let span = Span::call_site().located_at(path.span());
                quote_spanned!(span=> || #path())
            }
            closure => closure.written(),
        }
    }
}

/// A token of a block: the braces, or what stands in front of them.
fn outermost(token: TokenTree) -> TokenTree {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => ours(group).into(),
        token => token,
    }
}

pub(super) const FORM: Asks<Probe> = Asks {
    form: "probe(async || …)",
    remedy: "write `on_stale = probe(async || …)`, with a closure that asks",
    read: asked,
};

/// The closure that asks.
fn asked(input: ParseStream<'_>) -> syn::Result<Probe> {
    const FACT: &str = "`probe` takes a closure, which is called without arguments and gives a `Probe<T>`";
    let inside;
    let parens = parenthesized!(inside in input);
    let refuse = |input: ParseStream<'_>, remedy: &str| {
        let error = input.error(format!("{FACT}\n{remedy}"));
        // What is left there would be an error of its own.
        input.parse::<TokenStream>()?;
        Err(error)
    };
    if inside.is_empty() {
        let fact = format!("{FACT}\nwrite it, such as `probe(async || find_charge(id).await)`");
        return Err(syn::Error::new(parens.span.join(), fact));
    }
    if let Some(path) = quoted::<Path>(&inside) {
        let path = path.to_token_stream().to_string().replace(char::is_whitespace, "");
        return refuse(&inside, &format!("write `probe({path})`, without quotes"));
    }
    let is_async = inside.peek(Token![async]);
    let remedy = match inside.fork().parse::<Expr>() {
        // A closure that is half typed is rustc's to tell of.
        Err(_) if parameterless(&inside) => {
            return Ok(Probe::Closure { is_async, written: inside.parse()? });
        }
        Ok(Expr::Path(path)) => return end(&inside, FACT).map(|()| Probe::Path(path)),
        Ok(Expr::Closure(closure)) if closure.inputs.is_empty() => {
            return end(&inside, FACT).map(|()| match closure.output {
                ReturnType::Default if is_async => Probe::Async(closure),
                _ => Probe::Closure { is_async, written: closure.into_token_stream() },
            });
        }
        Ok(Expr::Closure(_)) => "remove its parameters: it sees the variables of the job",
        Ok(Expr::Async(_)) => "write `probe(async || { … })`, with `||` in front of the block",
        Ok(Expr::Call(_) | Expr::MethodCall(_) | Expr::Await(_)) => {
            "write `probe(async || …)` around this, with its `.await`: it is called where a probe is needed"
        }
        _ => "write `probe(async || find_charge(id).await)`",
    };
    refuse(&inside, remedy)
}

/// Steps over what was read, and refuses what follows.
fn end(inside: ParseStream<'_>, fact: &str) -> syn::Result<()> {
    inside.parse::<Expr>()?;
    inside.parse::<Option<Token![,]>>()?;
    if inside.is_empty() {
        return Ok(());
    }
    let error = inside.error(format!("{fact}\nremove what stands behind it"));
    inside.parse::<TokenStream>()?;
    Err(error)
}
