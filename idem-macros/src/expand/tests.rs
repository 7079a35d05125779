//! Expansions beside what they were made from, as `snapshots/*.rs`; compared token by token.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::quote;
use syn::{
    Attribute,
    parse::{ParseStream, Parser},
};

const MARK: &str = "// expands to";

/// The tokens as words, whatever their spacing and their trailing commas.
fn words(tokens: TokenStream, into: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                if open == "{" {
                    into.pop_if(|last| last == ",");
                }
                into.push(open.to_owned());
                words(group.stream(), into);
                into.pop_if(|last| last == ",");
                into.push(close.to_owned());
            }
            token => into.push(token.to_string()),
        }
    }
}

fn parse(text: &str) -> TokenStream {
    text.parse().expect("a snapshot of Rust tokens")
}

fn check(snapshot: &str, expand: impl FnOnce(TokenStream) -> TokenStream) {
    let (source, expected) = snapshot.split_once(MARK).expect("a snapshot with its mark");
    let expanded = expand(parse(source));
    let (mut found, mut wanted) = (Vec::new(), Vec::new());
    words(expanded.clone(), &mut found);
    words(parse(expected), &mut wanted);
    assert!(found == wanted, "another expansion:\n{expanded}");
}

/// Expands the `#[idempotent(…)]` at the head of the item.
fn attribute(source: TokenStream) -> TokenStream {
    let split =
        |input: ParseStream<'_>| Ok((input.call(Attribute::parse_outer)?, input.parse::<TokenStream>()?));
    let (mut attrs, rest) = split.parse2(source).expect("an item with its attributes");
    let (attr, item) = (attrs.remove(0), quote!(#(#attrs)* #rest));
    let args = attr.meta.require_list().expect("an attribute with arguments").tokens.clone();
    crate::attribute(args, &item)
}

macro_rules! snapshots {
    ($($name:ident => $expand:path;)*) => {$(
        #[test]
        fn $name() {
            check(include_str!(concat!("../../snapshots/", stringify!($name), ".rs")), $expand);
        }
    )*};
}

snapshots! {
    async_function => attribute;
    sync_function => attribute;
    every_setter => attribute;
    boxed_future => attribute;
    transactional => attribute;
    key_function => attribute;
    mistake => attribute;
    key_part => crate::key_part::derive;
}
