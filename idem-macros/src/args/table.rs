//! Tables of legal arguments, which drive the parsers and the messages.

use proc_macro2::{Ident, Span, TokenTree};
use syn::{Token, ext::IdentExt, parse::ParseStream, token};

use super::Arg;

/// A legal argument: its name, how it is written, what reads its value.
pub(crate) struct Legal<A: 'static> {
    pub(crate) name: &'static str,
    shape: Shape,
    read: Read<A>,
}

#[derive(Clone, Copy)]
enum Shape {
    /// `name = value`, with an example of the value.
    Value(&'static str),
    /// `name(element, …)`, with an example of an element; may be repeated.
    List(&'static str),
    /// `name` alone.
    Flag,
}

type Read<A> = fn(&mut A, Span, ParseStream<'_>) -> syn::Result<()>;

impl<A> Legal<A> {
    pub(crate) const fn value(name: &'static str, example: &'static str, read: Read<A>) -> Self {
        Self { name, shape: Shape::Value(example), read }
    }

    pub(crate) const fn list(name: &'static str, example: &'static str, read: Read<A>) -> Self {
        Self { name, shape: Shape::List(example), read }
    }

    pub(crate) const fn flag(name: &'static str, read: Read<A>) -> Self {
        Self { name, shape: Shape::Flag, read }
    }

    /// Whether it may be given more than once.
    pub(crate) fn repeats(&self) -> bool {
        matches!(self.shape, Shape::List(_))
    }

    /// How the argument is written, as an example.
    pub(crate) fn form(&self) -> String {
        match self.shape {
            Shape::Value(example) => format!("{} = {example}", self.name),
            Shape::List(example) => format!("{}({example})", self.name),
            Shape::Flag => self.name.to_owned(),
        }
    }

    /// Reads what stands behind the argument's name.
    pub(crate) fn argument(&self, args: &mut A, name: Span, input: ParseStream<'_>) -> syn::Result<()> {
        self.enter(name, input)?;
        (self.read)(args, name, input)?;
        if input.is_empty() || input.peek(Token![,]) {
            return Ok(());
        }
        Err(input.error(format!("expected `,`: `{}` is written `{}`", self.name, self.form())))
    }

    /// Steps over the `=` of a value; refuses what is not of the argument's shape.
    fn enter(&self, name: Span, input: ParseStream<'_>) -> syn::Result<()> {
        let ends = input.is_empty() || input.peek(Token![,]);
        let fits = match self.shape {
            Shape::Value(_) => input.parse::<Option<Token![=]>>()?.is_some() && !input.is_empty(),
            Shape::List(_) => input.peek(token::Paren),
            Shape::Flag => ends,
        };
        let form = self.form();
        let message = match self.shape {
            _ if fits => return Ok(()),
            Shape::Flag => format!("`{form}` stands alone: it takes no value"),
            _ => format!("`{}` is written `{form}`", self.name),
        };
        Err(syn::Error::new(name, message))
    }
}

pub(crate) fn twice(name: &Ident) -> syn::Error {
    syn::Error::new(name.span(), format!("`{}` is given twice; keep one of them", name.unraw()))
}

pub(crate) fn set<T>(
    slot: &mut Option<Arg<T>>,
    name: Span,
    input: ParseStream<'_>,
    read: impl FnOnce(ParseStream<'_>) -> syn::Result<T>,
) -> syn::Result<()> {
    let span = if input.is_empty() || input.peek(Token![,]) { name } else { input.span() };
    *slot = Some(Arg { name, span, value: read(input)? });
    Ok(())
}

pub(crate) fn skip_to_comma(input: ParseStream<'_>) {
    while let Ok(token) = input.parse::<TokenTree>() {
        if matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',') {
            break;
        }
    }
}
