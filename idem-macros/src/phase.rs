//! `phase!("charge", mode = "lock_first", async { … })`: read, checked, and expanded where it stands.

mod body;
mod check;
mod each;
mod expand;
mod name;
mod options;
mod probe;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::{
    LitStr, Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

pub(crate) use self::body::Body;
use self::{check::check, name::name, options::Options};
use crate::{
    args::{Mode, table::skip_to_comma},
    errors::Errors,
};

/// One phase as it is written. What was faulty is absent.
#[derive(Default)]
pub(crate) struct Phase {
    pub(crate) name: Option<LitStr>,
    options: Options,
    pub(crate) body: Option<Body>,
    /// The body's tokens, faulty or not.
    written: TokenStream,
}

/// Expands the macro: the path of the runtime, a comma, and what the user wrote.
pub(crate) fn phase(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter();
    let krate: TokenStream = tokens.by_ref().take_while(|token| !is_comma(token)).collect();
    let mut errors = Errors::default();
    let phase = Phase::parse(tokens.collect(), &mut errors);
    let checked = check(&phase, &mut errors);
    match (errors.finish(), checked) {
        (Ok(()), Some(checked)) => expand::expand(&checked, &krate),
        (Ok(()), None) => TokenStream::new(),
        (Err(error), _) => expand::instead(&phase.written, &error),
    }
}

impl Phase {
    /// Reads what can be read; each faulty part is one error and hinders no other.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut phase = Self::default();
        let read = |input: ParseStream<'_>| {
            phase.read(input, errors);
            // Whatever is left was told of, and would be an error of its own.
            input.parse::<TokenStream>().map(drop)
        };
        let end = read.parse2(bare(tokens));
        errors.take(end);
        phase
    }

    /// The mode; `None` where it was written and could not be read.
    pub(crate) fn mode(&self) -> Option<Mode> {
        self.options.mode()
    }

    fn read(&mut self, input: ParseStream<'_>, errors: &mut Errors) {
        if input.is_empty() {
            errors.at(
                Span::call_site(),
                "a phase has a name and a body\nwrite `phase!(\"charge\", async { … })`",
            );
            return;
        }
        self.name = errors.take(name(input));
        let mut faulty = self.name.is_none();
        while !input.is_empty() {
            if self.name.is_none() && input.peek(LitStr) {
                // The name, in another place than the one where it was missed.
                skip_to_comma(input);
                continue;
            }
            if !Options::begins(input) {
                self.take_body(input, errors);
                return;
            }
            faulty |= errors.take(self.options.argument(input)).is_none();
            skip_to_comma(input);
        }
        // One that was skipped behind a fault is not missing.
        if let Some(name) = self.name.as_ref().filter(|_| !faulty) {
            errors.at(
                name.span(),
                format!(
                    "the phase `{name}` has no body\nwrite `phase!(\"{name}\", async {{ … }})`, or in a synchronous job `phase!(\"{name}\", || {{ … }})`",
                    name = name.value()
                ),
            );
        }
    }

    fn take_body(&mut self, input: ParseStream<'_>, errors: &mut Errors) {
        let start = input.fork();
        self.body = Body::parse(input, errors);
        self.written = self.body.as_ref().map_or_else(|| between(&start, input), Body::tokens);
        let _ = input.parse::<Token![,]>();
        if input.is_empty() || self.body.is_none() || self.name.is_none() {
            return;
        }
        let what = match input.fork().call(syn::Ident::parse_any) {
            Ok(option) if Options::begins(input) => format!("`{option}`"),
            _ => "this".to_owned(),
        };
        errors.push(input.error(format!(
            "{what} stands behind the body, which comes last\nmove it in front of the body, or remove it"
        )));
    }
}

/// The tokens without the invisible groups that a `macro_rules!` puts around its fragments, where one is all that stands
/// between two commas: around a part of an expression it is what holds that together.
fn bare(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut bare_tokens = TokenStream::new();
    let mut begins = true;
    while let Some(token) = tokens.next() {
        let ends = tokens.peek().is_none_or(is_comma);
        let was_comma = is_comma(&token);
        match token {
            TokenTree::Group(group) if begins && ends && group.delimiter() == Delimiter::None => {
                bare_tokens.extend(bare(group.stream()));
            }
            token => bare_tokens.extend([token]),
        }
        begins = was_comma;
    }
    bare_tokens
}

fn is_comma(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')
}

/// The tokens from one place of a stream to another.
fn between(start: ParseStream<'_>, end: ParseStream<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    while start.cursor() != end.cursor() {
        match start.parse::<TokenTree>() {
            Ok(token) => tokens.extend([token]),
            Err(_) => break,
        }
    }
    tokens
}
