//! Whatever is written, the macros do not panic: a function stays, as it was beside the errors, or expanded, and so does
//! the body of a phase.

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

/// Phases with every kind of option and of body.
const PHASES: [&str; 7] = [
    r#""charge", async { bank.charge(user_id).await }"#,
    r#""charge", mode = "lock_first", stale_after = "30s", on_stale = "retry", on_error = "by_mark", async move { Ok(1) },"#,
    r#""charge", on_stale = probe(async || { find(user_id).await }), on_error = judge, async { charge(user_id).await }"#,
    r#""line", mode = "record_after", each = <line.id.0>, async { Ok(line) }"#,
    r#""kept", mode = "transactional", tx = tx, on_error = "release", async { query(1).execute(&mut *tx).await }"#,
    r#""sync", on_stale = probe(find), || Ok::<A, B>(1)"#,
    r#""sync", on_stale = probe(|| Probe::Unknown), move || -> Result<u8, Error> { Ok(1) },"#,
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

/// A phase in a macro's own tokens, behind the path of the runtime.
fn phase(written: &TokenStream) -> String {
    crate::phase::phase(quote!(jobs, #written)).to_string()
}

#[test]
fn spoilt_phases_are_refused_or_expanded_and_never_panic() {
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let (mut refused, mut expanded) = (0, 0);
    for _ in 0..500 {
        for written in PHASES {
            let mut written = tokens(written);
            for _ in 0..dice.below(4) {
                written = dice.spoil(written);
            }
            let phase = phase(&written);
            let is_refused = phase.contains("compile_error");
            assert!(
                is_refused || phase.contains("phase_call"),
                "neither an expansion nor an error: {written}"
            );
            assert!(syn::parse_str::<syn::Expr>(&phase).is_ok() || !is_refused, "no expression: {phase}");
            *if is_refused { &mut refused } else { &mut expanded } += 1;
            // The attribute looks for phases among all tokens.
            let item = quote!(
                async fn charge(user_id: u64) -> Result<(), Error> {
                    phase!(#written);
                    Ok(())
                }
            );
            is_refused_with_its_job(&item);
        }
    }
    assert!(refused > 500 && expanded > 500, "{refused} refused, {expanded} expanded");
}

fn is_refused_with_its_job(item: &TokenStream) {
    for args in [r#"key = "billing:<user_id>""#, r#"key = "billing:<user_id>", mode = "record_after""#] {
        is_refused(&tokens(args), item);
    }
}

#[test]
fn a_refused_phase_keeps_its_body() {
    for (written, kept) in [
        (r#""Charge", async { charge(user_id).await }"#, "async { charge (user_id) . await }"),
        (r#""charge", mod = "record_after", move || charge(user_id)"#, "move || charge (user_id)"),
        (r#""charge", { charge(user_id).await }"#, "{ charge (user_id) . await }"),
        (r#""charge", charge(user_id)"#, "charge (user_id)"),
        (r#""charge", async { charge(user_id) }.await?"#, "async { charge (user_id) }"),
    ] {
        let phase = phase(&tokens(written));
        let close = |text: &str| text.replace(char::is_whitespace, "");
        let kept = close(&format!("let _ = {kept};"));
        assert!(phase.contains("compile_error") && close(&phase).contains(&kept), "{phase}");
    }
}

#[test]
fn a_half_typed_phase_is_no_error_of_the_macro() {
    for written in [
        r#""charge", async { order. }"#,
        r#""charge", async { let x = }"#,
        r#""charge", || order."#,
        r#""charge", move || { if },"#,
        r#""charge", on_stale = probe(async || { order. }), async { Ok(1) }"#,
    ] {
        let phase = phase(&tokens(written));
        assert!(!phase.contains("compile_error"), "{written}: {phase}");
    }
}

#[test]
fn one_mistake_of_a_phase_is_one_error() {
    for written in [
        "",
        "async { Ok(1) }",
        r#""charge""#,
        r#""charge" async { Ok(1) }"#,
        r#""charge", mode = "lock_frist", tx = tx, stale_after = "5s", async { Ok(1) }"#,
        r#""charge", mode = "lock_frist" async { Ok(1) }"#,
        r#""charge", mode = "transactional", tx = "tx", async { Ok(1) }"#,
        r#""charge", mode = "transactional", tx = tx, || Ok(1)"#,
        r#""charge", on_stale = probe(a, b, c), async { Ok(1) }"#,
        r#""charge", on_stale = probe(|a| b(a)), async { Ok(1) }"#,
        r#""charge", on_stale = async || a, async { Ok(1) }"#,
        r#""charge", each = <a>:<b>, async { Ok(1) }"#,
        r#""charge", each = "<a>", async { Ok(1) }"#,
        r#""charge", async { Ok(1) }, mode = "record_after", tx = tx"#,
        r#""charge", async move || Ok(1)"#,
        r#""charge", |a, b| Ok(1)"#,
        r#"format!("{a}-{b}", a, b), async { Ok(1) }"#,
        r#"async { Ok(1) }, "charge""#,
        r#"mode = "record_after", "charge", async { Ok(1) }"#,
        r#""charge", || f::<A, B>(1), mode = "record_after""#,
    ] {
        let errors = phase(&tokens(written)).matches("compile_error").count();
        assert_eq!(errors, 1, "{written}");
    }
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
