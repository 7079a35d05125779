//! `each = <line.id>`: what tells the elements of a loop apart, of which each gets a phase.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Expr, LitStr, Token,
    parse::{ParseStream, Parser},
};

use crate::args::{FieldPath, value::fields};

pub(super) fn each(input: ParseStream<'_>) -> syn::Result<FieldPath> {
    const FACT: &str = "`each` names what tells one element from another, in brackets as in a key";
    if let Ok(literal) = input.fork().parse::<LitStr>() {
        let path = literal.value().trim_matches(['<', '>', '{', '}']).to_owned();
        let path = if path.parse::<TokenStream>().is_ok_and(is_path) { path } else { "line.id".to_owned() };
        return Err(input.error(format!("{FACT}: write `each = <{path}>`, without quotes")));
    }
    if !input.peek(Token![<]) {
        let Ok(written) = input.fork().parse::<Expr>() else {
            return Err(input.error(format!("{FACT}, such as `each = <line.id>`")));
        };
        let path = written.to_token_stream();
        let remedy = if is_path(path.clone()) {
            format!("write `each = <{}>`", path.to_string().replace(char::is_whitespace, ""))
        } else {
            "bind it to a variable in front of the phase, and write `each = <id>`".to_owned()
        };
        return Err(syn::Error::new_spanned(written, format!("{FACT}\n{remedy}")));
    }
    let open: Token![<] = input.parse()?;
    let mut path = TokenStream::new();
    while !(input.is_empty() || input.peek(Token![>]) || input.peek(Token![,])) {
        path.extend([input.parse::<TokenTree>()?]);
    }
    if input.parse::<Token![>]>().is_err() {
        let path = path.to_string().replace(char::is_whitespace, "");
        return Err(syn::Error::new(
            open.span,
            format!("{FACT}: this one is not closed\nwrite `each = <{path}>`"),
        ));
    }
    if path.is_empty() {
        return Err(syn::Error::new(
            open.span,
            format!("{FACT}\nname a variable or its field, such as `each = <line.id>`"),
        ));
    }
    let wanted = format!(
        "{FACT}: a variable, or a path of fields\nbind anything else to a variable in front of the phase"
    );
    if !(input.is_empty() || input.peek(Token![,])) {
        let error = format!(
            "{FACT}: one variable, or one path of fields\nfor more than one make a tuple type of them with `#[derive(KeyPart)]`"
        );
        return Err(input.error(error));
    }
    (|path: ParseStream<'_>| fields(path, &wanted)).parse2(path)
}

fn is_path(tokens: TokenStream) -> bool {
    (|input: ParseStream<'_>| fields(input, "")).parse2(tokens).is_ok()
}
