//! Whatever is written, the macro does not panic and the function stays: as it was beside the errors, or expanded.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;

/// Arguments with every kind of value, for a function with the parameters below.
const ARGS: [&str; 7] = [
    r#"key = "billing:<user_id>:<order.month>", mode = "lock_first", stale_after = "90s", on_stale = "retry", max_takeovers = 3"#,
    r#"key = "billing:<user_id>", on_stale = probe(bank::was_charged), max_takeovers = 3"#,
    r#"key = "billing:<user_id>", mode = "record_after", ttl = "24h", on_error = judge, on_busy = "wait", wait_for = "5s""#,
    r#"key = "billing:<user_id>", mode = "transactional", tx = tx, replay = false"#,
    r#"key = "billing:<self.tenant>:<user_id>", idem = self.idem, name = "billing", key_fn = billing_key, crate = crate::jobs"#,
    r#"key = "billing:all", singleton, fingerprint = (order.total, user_id), heartbeat = false, stale_after = "1h""#,
    r#"key = "billing:<user_id>:<attempt>", allow_volatile(attempt), allow_short_ttl, allow_overlap(crate::other)"#,
];

const ITEMS: [&str; 5] = [
    "/// Charges.\n pub async fn charge(&self, user_id: u64, order: Order, attempt: u32, tx: &mut Transaction<'_, Db>) -> Result<Receipt, Error> { order.pay(user_id).await }",
    "fn charge<T: KeyPart, const N: usize>(user_id: T, mut order: [u8; N], (a, attempt): (u8, u32)) -> anyhow::Result<()> where T: Send { #![allow(unused)] Ok(()) }",
    "fn charge<'a>(user_id: &'a str, #[cfg(unix)] order: u8) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>> { Box::pin(async move { Ok(()) }) }",
    "pub(crate) unsafe fn r#move(r#type: u8, user_id: u64) -> Result<u8, Error> { phase!(\"a\", async { 1 }); user_id. }",
    "impl Charge { fn charge(user_id: u64) -> Result<(), Error>; }",
];

/// Numbers that look random and are the same on every run (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).expect("a small limit")).expect("a small number")
    }

    /// The tokens with one of them, at any depth, gone, doubled, swapped with the next or put in place of another.
    fn spoil(&mut self, tokens: TokenStream) -> TokenStream {
        let mut trees: Vec<TokenTree> = tokens.into_iter().collect();
        if trees.is_empty() {
            return quote!(x);
        }
        let at = self.below(trees.len());
        if let TokenTree::Group(group) = &trees[at]
            && self.below(4) > 0
        {
            let delimiter = if self.below(8) == 0 { Delimiter::None } else { group.delimiter() };
            trees[at] = Group::new(delimiter, self.spoil(group.stream())).into();
            return trees.into_iter().collect();
        }
        match self.below(4) {
            0 => drop(trees.remove(at)),
            1 => trees.insert(at, trees[at].clone()),
            2 => {
                let next = (at + 1) % trees.len();
                trees.swap(at, next);
            }
            _ => trees[at] = trees[self.below(trees.len())].clone(),
        }
        trees.into_iter().collect()
    }
}

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("tokens")
}

/// Asserts what must hold whatever was written; tells whether it was refused.
fn is_refused(args: &TokenStream, item: &TokenStream) -> bool {
    let written = item.to_string();
    let expanded = crate::attribute(args.clone(), item).to_string();
    let Some(errors) = expanded.strip_prefix(&written) else {
        assert!(!expanded.contains("compile_error"), "an error, and not the item: {args} on {item}");
        return false;
    };
    let errors: Vec<TokenTree> = tokens(errors).into_iter().collect();
    let starts = errors.iter().filter(|token| token.to_string() == "compile_error").count();
    assert!(starts > 0, "neither an expansion nor an error: {args} on {item}");
    assert!(
        errors.iter().filter(|token| matches!(token, TokenTree::Group(_))).count() == starts,
        "more than errors"
    );
    true
}

#[test]
fn spoilt_tokens_are_refused_or_expanded_and_never_panic() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let (mut refused, mut expanded) = (0, 0);
    for _ in 0..1_500 {
        for args in ARGS {
            let (mut args, mut item) = (tokens(args), tokens(ITEMS[dice.below(ITEMS.len())]));
            for _ in 0..dice.below(3) {
                args = dice.spoil(args);
            }
            for _ in 0..dice.below(3) {
                item = dice.spoil(item);
            }
            *if is_refused(&args, &item) { &mut refused } else { &mut expanded } += 1;
        }
    }
    assert!(refused > 1_000 && expanded > 100, "{refused} refused, {expanded} expanded");
}

#[test]
fn a_half_typed_body_is_no_error_of_the_macro() {
    for body in [
        "{ order. }",
        "{ let x = }",
        "{ order.pay(user_id, , ) }",
        "{ Ok(match user_id { 1 => , }) }",
        "{ if }",
    ] {
        let item = tokens(&format!("async fn charge(user_id: u64) -> Result<(), Error> {body}"));
        assert!(!is_refused(&tokens(r#"key = "billing:<user_id>""#), &item), "{body}");
    }
}

#[test]
fn one_mistake_is_one_error() {
    let item = tokens("async fn charge(user_id: u64, month: u8) -> Result<(), Error> { Ok(()) }");
    for args in [
        "",
        "key",
        r#""billing:<user_id>""#,
        r#"key = "billing:<usr_id>""#,
        r#"key = "billing:{user_id}""#,
        r#"key = "billing:<user_id>:<month>", mode = "record_after""#,
        r#"key = "billing:<user_id>", mode = "lock_frist""#,
        r#"key = "billing:<user_id>", mod = "lock_first""#,
        r#"key = "billing:<user_id>", mode = "lock_frist", stale_after = "5s", max_takeovers = 3, tx = tx"#,
        r#"key = "billing:<user_id>", on_stale = "retri", max_takeovers = 3"#,
        r#"key = "billing:<user_id>", on_stale = "probe", max_takeovers = 3"#,
        r#"key = "billing:<user_id>", on_stale = probe(a, b, c), max_takeovers = 3"#,
        r#"key = "billing:<user_id>", on_stale = probe(|a| b(a), c) max_takeovers = 3"#,
        r#"key = "billing:<user_id>", mode = "record_after", on_stale = probe(a)"#,
        r#"key = "billing:<user_id>", ttl = "1w", stale_after = "1h""#,
        r#"key = "billing:<user_id>" ttl = "24h""#,
        r#"key = "billing:<user_id>", fingerprint = (mnoth)"#,
    ] {
        let errors = crate::attribute(tokens(args), &item).to_string().matches("compile_error").count();
        assert_eq!(errors, 1, "{args}");
    }
}
