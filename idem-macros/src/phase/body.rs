//! The body of a phase, kept as tokens: a block of its own future, or a closure where nothing waits.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::quote;
use syn::{
    Expr, Token,
    parse::{ParseStream, discouraged::Speculative},
    token,
};

use super::between;
use crate::errors::Errors;

pub(crate) enum Body {
    /// `async move { … }`: the keywords, and the block.
    Async { keywords: TokenStream, block: Group },
    /// `move || …`: the head as it is written, whether a type follows, and all that follows.
    Sync { head: TokenStream, is_typed: bool, rest: TokenStream },
}

impl Body {
    pub(super) fn parse(input: ParseStream<'_>, errors: &mut Errors) -> Option<Self> {
        let start = input.fork();
        match Self::read(input) {
            Ok(body) => {
                errors.take(end(input));
                Some(body)
            }
            Err(error) => {
                errors.push(error);
                // As far as an expression goes, so that its names stay in use.
                if start.parse::<Expr>().is_ok() {
                    input.advance_to(&start);
                }
                None
            }
        }
    }

    /// As it is written.
    pub(super) fn tokens(&self) -> TokenStream {
        match self {
            Self::Async { keywords, block } => quote!(#keywords #block),
            Self::Sync { head, rest, .. } => quote!(#head #rest),
        }
    }

    fn read(input: ParseStream<'_>) -> syn::Result<Self> {
        let start = input.fork();
        if input.peek(token::Brace) || input.peek(Token![unsafe]) {
            return Err(input.error(
                "a plain block would run before the phase is looked up, again in each repeat\n\
                 write `async { … }`, or in a synchronous job `|| { … }`",
            ));
        }
        if !is_async_or_closure(input) {
            return Err(not_a_body(input));
        }
        let is_async = input.parse::<Option<Token![async]>>()?.is_some();
        input.parse::<Option<Token![move]>>()?;
        if input.peek(Token![|]) || input.peek(Token![||]) {
            if is_async {
                return Err(start.error(
                    "an `async` closure where a block does: the phase takes it as it stands\n\
                     write `async { … }`, without `||`",
                ));
            }
            return closure(input, &start);
        }
        let keywords = between(&start, input);
        let Some(block) = block(input)? else {
            return Err(input.error("the body of a phase is a block\nwrite `async { … }`"));
        };
        Ok(Self::Async { keywords, block })
    }
}

/// Refuses what follows a body without a comma.
fn end(input: ParseStream<'_>) -> syn::Result<()> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(());
    }
    let remedy = if input.peek(Token![.]) && input.peek2(Token![await]) {
        "the macro awaits it, and gives its `Ok`: remove `.await`, and a `?` behind it"
    } else {
        "the macro gives its `Ok`: remove what stands behind it, or write it behind `phase!(…)`"
    };
    let mut behind = TokenStream::new();
    while !(input.is_empty() || input.peek(Token![,])) {
        behind.extend([input.parse::<TokenTree>()?]);
    }
    Err(syn::Error::new_spanned(behind, format!("the body of a phase ends with its block\n{remedy}")))
}

/// Whether a closure without parameters stands there.
pub(super) fn parameterless(input: ParseStream<'_>) -> bool {
    let head = input.fork();
    let _ = head.parse::<Token![async]>();
    let _ = head.parse::<Token![move]>();
    head.peek(Token![||])
}

fn is_async_or_closure(input: ParseStream<'_>) -> bool {
    [input.peek(Token![async]), input.peek(Token![move]), input.peek(Token![|]), input.peek(Token![||])]
        .contains(&true)
}

fn closure(input: ParseStream<'_>, start: ParseStream<'_>) -> syn::Result<Body> {
    if input.parse::<Option<Token![||]>>()?.is_none() {
        input.parse::<Token![|]>()?;
        if !input.peek(Token![|]) {
            return Err(input.error(
                "the closure of a phase is called without arguments: it sees the variables of the job\n\
                 write `|| { … }`",
            ));
        }
        input.parse::<Token![|]>()?;
    }
    let head = between(start, input);
    let is_typed = input.peek(Token![->]);
    let rest = input.fork();
    let whole = start.fork();
    if whole.parse::<Expr>().is_ok() {
        input.advance_to(&whole);
        return Ok(Body::Sync { head, is_typed, rest: between(&rest, input) });
    }
    // Half typed: rustc tells of it.
    let mut tokens: Vec<TokenTree> = input.parse::<TokenStream>()?.into_iter().collect();
    tokens.pop_if(|last| matches!(last, TokenTree::Punct(punct) if punct.as_char() == ','));
    Ok(Body::Sync { head, is_typed, rest: tokens.into_iter().collect() })
}

/// The block, seen through the invisible groups that a `macro_rules!` puts around its fragments.
fn block(input: ParseStream<'_>) -> syn::Result<Option<Group>> {
    if !input.peek(token::Brace) {
        return Ok(None);
    }
    let mut token = input.parse::<TokenTree>()?;
    while let TokenTree::Group(group) = &token
        && group.delimiter() == Delimiter::None
        && let Some(inner) = group.stream().into_iter().next()
    {
        token = inner;
    }
    Ok(match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    })
}

/// A block with its braces in the expansion's context: inside of another one they would look needless.
pub(super) fn ours(mut block: Group) -> Group {
    block.set_span(block.span().resolved_at(Span::call_site()));
    block
}

fn not_a_body(input: ParseStream<'_>) -> syn::Error {
    const FACT: &str = "the body of a phase is an `async` block, and in a synchronous job a closure: \
                        nothing of it starts before the phase is looked up";
    let Ok(whole) = input.fork().parse::<Expr>() else {
        return input.error(format!("{FACT}\nwrite `async {{ … }}` or `|| {{ … }}`"));
    };
    let message = match whole {
        Expr::Lit(_) => "a phase has one name, and then its options and its body\nremove this".to_owned(),
        Expr::Await(_) => format!("{FACT}\nwrite `async {{ … }}` around this"),
        _ => format!("{FACT}\nwrite `async {{ … .await }}` or `|| …` around this"),
    };
    syn::Error::new_spanned(whole, message)
}
