//! The phases of a job: each has a name of its own, by which a repeat finds what it did.

use proc_macro2::{TokenStream, TokenTree};
use syn::LitStr;

use crate::{errors::Errors, function::Function};

/// A phase runs once for its name, so a second one of the same name would be answered with the first one's result.
/// Found by its tokens, `phase!("name"`, wherever in the body they stand; what a loop repeats is found at run time.
pub(super) fn check_names(function: &Function, errors: &mut Errors) {
    let mut names = Vec::new();
    collect(function.body.stream(), &mut names);
    for (at, name) in names.iter().enumerate() {
        let text = name.value();
        if names[..at].iter().any(|earlier| earlier.value() == text) {
            errors.at(
                name.span(),
                format!(
                    "a second phase named `{text}` in `{job}`: a phase runs once per key, so this one would get the first one's result\n\
                     give it a name of its own",
                    job = function.sig.ident
                ),
            );
        }
    }
}

/// The names of all phases, in the order in which they stand.
fn collect(tokens: TokenStream, names: &mut Vec<LitStr>) {
    let mut before: [Option<TokenTree>; 2] = [None, None];
    for token in tokens {
        if let TokenTree::Group(group) = &token {
            if calls_phase(&before) {
                names.extend(first_string(group.stream()));
            }
            collect(group.stream(), names);
        }
        let [_, last] = before;
        before = [last, Some(token)];
    }
}

/// Whether the two tokens are `phase` and `!`.
fn calls_phase(before: &[Option<TokenTree>; 2]) -> bool {
    matches!(before, [Some(TokenTree::Ident(name)), Some(TokenTree::Punct(bang))]
        if name == "phase" && bang.as_char() == '!')
}

fn first_string(tokens: TokenStream) -> Option<LitStr> {
    let first = tokens.into_iter().next()?;
    syn::parse2(first.into()).ok()
}
