//! The name of a phase: what stands in the key behind `/`.

use proc_macro2::Span;
use syn::{Expr, LitStr, Token, parse::ParseStream, token};

use super::options::Options;
use crate::args::{table::skip_to_comma, value::string};

/// The most bytes of a name.
const LIMIT: usize = 64;

/// Reads the name and the comma behind it.
pub(super) fn name(input: ParseStream<'_>) -> syn::Result<LitStr> {
    let literal = literal(input)?;
    if !(input.is_empty() || input.peek(Token![,])) {
        let error = input.error("expected `,` behind the name of the phase");
        skip_to_comma(input);
        return Err(error);
    }
    let _ = input.parse::<Token![,]>();
    check(&literal.value(), literal.span())?;
    Ok(literal)
}

fn literal(input: ParseStream<'_>) -> syn::Result<LitStr> {
    if input.peek(LitStr) {
        let literal = string(input, "");
        if literal.is_err() {
            skip_to_comma(input);
        }
        return literal;
    }
    let begins_body = [
        input.peek(Token![async]),
        input.peek(Token![move]),
        input.peek(Token![|]),
        input.peek(Token![||]),
        input.peek(token::Brace),
    ];
    if begins_body.contains(&true) || Options::begins(input) {
        return Err(input.error("the name of the phase is missing, which comes first\nwrite one here, such as `phase!(\"charge\", …)`"));
    }
    let remedy = match input.fork().parse::<Expr>() {
        Ok(Expr::Macro(_) | Expr::MethodCall(_) | Expr::Call(_)) => {
            "write one such as `\"line\"`, and `each = <line.id>` behind it for a phase of each element"
        }
        _ => "write it here, such as `\"charge\"`",
    };
    let error = input.error(format!(
        "the name of a phase is a string literal: it is checked here, and repeats find the phase by it\n{remedy}"
    ));
    skip_to_comma(input);
    Err(error)
}

fn check(name: &str, span: Span) -> syn::Result<()> {
    const REASON: &str =
        "it stands in the key behind `/`, and holds lower-case letters, digits, `-` and `_` alone";
    let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let message = if name.is_empty() {
        format!("the name of a phase is empty: {REASON}\nsay what the phase does, such as `\"charge\"`")
    } else if !name.chars().all(is_legal) {
        let remedy = if name.contains(['{', '<', '%', '$']) {
            "write one without values, and `each = <line.id>` behind it for a phase of each element"
                .to_owned()
        } else {
            format!("write `\"{}\"`", legal(name))
        };
        format!("`{}` cannot name a phase: {REASON}\n{remedy}", name.escape_debug())
    } else if name.len() > LIMIT {
        format!(
            "the name of a phase is {} bytes long, and {LIMIT} is the most: it stands in the key, behind the job's\n\
             shorten it: a word for what the phase does is enough",
            name.len()
        )
    } else {
        return Ok(());
    };
    Err(syn::Error::new(span, message))
}

/// The name in legal characters, `charge_card` for `Charge card`.
fn legal(name: &str) -> String {
    let mut legal = String::new();
    let lower = name.chars().flat_map(char::to_lowercase);
    for c in lower {
        if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' {
            legal.push(c);
        } else if !legal.ends_with('_') {
            legal.push('_');
        }
    }
    let legal = legal.trim_matches('_');
    if legal.is_empty() { "charge".to_owned() } else { legal.chars().take(LIMIT).collect() }
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::{LIMIT, check, legal};

    #[test]
    fn a_name_is_a_word_that_a_key_can_hold() {
        for name in ["a", "charge", "charge-card_2", "0", &"x".repeat(LIMIT)] {
            assert!(check(name, Span::call_site()).is_ok(), "{name}");
        }
        for name in ["", "Charge", "a b", "a/b", "a:b", "a.b", "größe", "{id}", "a\n", &"x".repeat(LIMIT + 1)]
        {
            assert!(check(name, Span::call_site()).is_err(), "{name}");
        }
    }

    #[test]
    fn what_is_proposed_is_legal() {
        for (name, proposed) in [
            ("Charge", "charge"),
            ("Charge card", "charge_card"),
            ("mail/receipt", "mail_receipt"),
            ("größe", "gr_e"),
        ] {
            assert_eq!(legal(name), proposed);
        }
        for name in ["ß", " ", "__", &"Ä b".repeat(LIMIT)] {
            assert!(check(&legal(name), Span::call_site()).is_ok(), "{name}");
        }
    }
}
