use proc_macro2::TokenStream;

use super::Plan;
use crate::{args::Args, errors::Errors, function::Function};

/// The plan, or the first line of each message.
fn plan(args: &str, function: &str) -> Result<Plan, Vec<String>> {
    let tokens = |text: &str| text.parse::<TokenStream>().expect("tokens");
    let mut errors = Errors::default();
    let args = Args::parse(tokens(args), &mut errors);
    let function = Function::parse(tokens(function), &mut errors);
    let plan = Plan::new(args, function, &mut errors);
    match errors.finish() {
        Ok(()) => Ok(plan.expect("a plan where nothing is wrong")),
        Err(error) => {
            let first = |error: syn::Error| error.to_string().lines().next().unwrap_or_default().to_owned();
            Err(error.into_iter().map(first).collect())
        }
    }
}

/// What is wrong with the attribute on `fn job(id: u64, month: u8)`, if anything.
fn faults(args: &str) -> Vec<String> {
    plan(args, "fn job(id: u64, month: u8) -> Result<(), Error> { Ok(()) }").err().unwrap_or_default()
}

#[test]
fn what_fits_together_passes() {
    for args in [
        r#"key = "j:<id>""#,
        r#"key = "j:<id>", mode = "lock_first", stale_after = "1s", ttl = "1s""#,
        r#"key = "j:<id>", ttl = "60s""#,
        r#"key = "j:<id>", on_stale = "retry", max_takeovers = 0"#,
        r#"key = "j:<id>", on_stale = probe(was_done), max_takeovers = 3"#,
        r#"key = "j:<id>", on_stale = probe(<Self as Done>::was::<u8>,)"#,
        r#"key = "j:<id>", heartbeat = false, stale_after = "1d""#,
        r#"key = "j:<id>", heartbeat = true"#,
        r#"key = "j:<id>", on_busy = "wait", wait_for = "1s""#,
        r#"key = "j:<id>", mode = "record_after", on_error = "hold", on_busy = "wait""#,
        r#"key = "j:<month>", ttl = "31d""#,
        r#"key = "j:<month>", mode = "record_after", ttl = "forever""#,
        r#"key = "j:<month>""#,
        r#"key = "j:<id>", fingerprint = (month,),"#,
        r#"key = "j:<id.day.x>", mode = "record_after""#,
        r#"key = "j:<id.day>", mode = "record_after""#,
        r#"key = "j", singleton"#,
    ] {
        assert_eq!(faults(args), [""; 0], "{args}");
    }
}

#[test]
fn each_contradiction_is_one_fault() {
    for (args, fact) in [
        (r#"mode = "lock_first""#, "needs a key"),
        (r#"key = "j:<id>", ttl = "59s""#, "is below `stale_after`, 60s by default"),
        (r#"key = "j:<id>", ttl = "2s", stale_after = "3s""#, "is below `stale_after = \"3s\"`"),
        (r#"key = "j:<id>", heartbeat = false"#, "without a heartbeat"),
        (r#"key = "j:<id>", max_takeovers = 1"#, "`max_takeovers` limits"),
        (r#"key = "j:<id>", wait_for = "1s""#, "`wait_for` limits"),
        (r#"key = "j:<id>", mode = "record_after", stale_after = "1s""#, "belongs to `lock_first`"),
        (r#"key = "j:<month>", ttl = "30d""#, "while its month still runs"),
        (r#"key = "j:<id.week>", mode = "record_after""#, "while its week still runs"),
        (r#"key = "j:<id.job_id>""#, "names the delivery"),
        (r#"key = "j:<id>", singleton"#, "`singleton` means one key"),
        (r#"key = "j:<id>", fingerprint = (id)"#, "is in the key already"),
        (r#"key = "j:<id>", fingerprint = (self.x)"#, "`self` is not a parameter"),
        (r#"key = "j:<id>", key_fn = job"#, "is the job itself"),
    ] {
        let found = faults(args);
        assert!(matches!(&found[..], [only] if only.contains(fact)), "{args}: {found:?}");
    }
}

#[test]
fn a_faulty_argument_brings_no_second_fault() {
    for args in [
        "key = 5",
        r#"key = "j:<id>", mode = "x", stale_after = "1s", heartbeat = false, wait_for = 5"#,
        r#"key = "j:<id>", stale_after = "x", heartbeat = false"#,
        r#"key = "j:<id>", on_stale = "x", max_takeovers = 1"#,
        r#"key = "j:<id>", on_busy = "x", wait_for = "1s""#,
        r#"key = "j:<month>", mode = "record_after", ttl = "x""#,
        r#"key = "j:<id>", stale_after = "x", ttl = "1s""#,
    ] {
        let wrong = args.matches("\"x\"").count() + args.matches("= 5").count();
        assert_eq!(faults(args).len(), wrong, "{args}: {:?}", faults(args));
    }
}

/// What is wrong with a transactional job.
fn faults_inside(args: &str, parameters: &str) -> Vec<String> {
    let args = format!(r#"key = "j:<id>", mode = "transactional"{args}"#);
    let function = format!("async fn job(id: u64, {parameters}) -> Result<(), Error> {{ Ok(()) }}");
    plan(&args, &function).err().unwrap_or_default()
}

#[test]
fn a_transactional_job_has_one_transaction() {
    for (args, parameters) in [
        ("", "tx: &mut Transaction<'_, Postgres>"),
        ("", "tx: &mut PgConnection"),
        ("", "tx: &mut impl Transact"),
        ("", "tx: &'t mut X"),
        ("", "mut tx: &mut X"),
        ("", "#[allow(unused)] tx: &mut X"),
        (", tx = conn", "tx: u64, conn: &mut X"),
        (", tx = conn", "(tx, _): (u64, u8), conn: &mut X"),
        (", tx = _tx", "_tx: &mut X"),
        (", tx = r#type", "r#type: &mut X"),
        (r#", on_busy = "wait", wait_for = "1s""#, "tx: &mut X"),
        (r#", wait_for = "1s""#, "tx: &mut X"),
        (r#", on_busy = "error""#, "tx: &mut X"),
    ] {
        assert_eq!(faults_inside(args, parameters), [""; 0], "{args} {parameters}");
    }
    for (args, parameters, fact) in [
        ("", "month: u8", "`job` has no parameter `tx`"),
        ("", "conn: &mut X", "`job` has no parameter `tx`"),
        ("", "__arg2: X", "`job` has no parameter `tx`"),
        (", tx = con", "conn: &mut X", "`con` is not a parameter of `job`; did you mean `conn`?"),
        (", tx = \"tx\"", "tx: &mut X", "`tx` is the name of a parameter: write `tx = tx`"),
        (", tx = self", "tx: &mut X", "`tx` is the name of the parameter"),
        ("", "tx: X", "`tx` is not a `&mut`"),
        ("", "tx: &X", "`tx` is not a `&mut`"),
        ("", "tx: impl Transact", "`tx` is not a `&mut`"),
        ("", "ref tx: &mut X", "`tx` is bound by a pattern"),
        ("", "Held { tx }: Held", "`tx` is bound by a pattern"),
        ("", "tx @ _: &mut X", "`tx` is bound by a pattern"),
        ("", "#[cfg(unix)] tx: &mut X", "the transaction can be compiled out"),
        (", fingerprint = (tx)", "tx: &mut X", "`tx` is the transaction that the job runs in"),
        (", allow_volatile(tx)", "tx: &mut X", "`<tx>` is not in the key"),
        (r#", stale_after = "90s""#, "tx: &mut X", "`stale_after` belongs to `lock_first`"),
        (r#", on_busy = "error", wait_for = "1s""#, "tx: &mut X", "`wait_for` limits"),
    ] {
        let found = faults_inside(args, parameters);
        assert!(matches!(&found[..], [only] if only.contains(fact)), "{args} {parameters}: {found:?}");
    }
}

#[test]
fn the_transaction_is_not_in_the_key() {
    let function = "async fn job(tx: &mut X) -> Result<(), Error> { Ok(()) }";
    for (key, faults) in [("j:<tx>", 1), ("j:<tx>:<tx.id>", 2)] {
        let found =
            plan(&format!(r#"key = "{key}", mode = "transactional""#), function).err().unwrap_or_default();
        assert_eq!(found.len(), faults, "{found:?}");
        assert!(found.iter().all(|fault| fault.starts_with("`tx` is the transaction")), "{found:?}");
    }
    let other = plan(r#"key = "j:<tx>""#, "fn job(tx: u64) -> Result<(), Error> { Ok(()) }");
    assert!(other.is_ok(), "a parameter like another where there is no transaction");
}

#[test]
fn a_transaction_belongs_to_its_mode() {
    for mode in ["lock_first", "record_after"] {
        let args = format!(r#"key = "j:<id>", mode = "{mode}", tx = month"#);
        let found = faults(&args);
        assert!(
            matches!(&found[..], [only] if only.contains("`tx` belongs to `transactional`")),
            "{found:?}"
        );
    }
    let found = faults(r#"key = "j:<id>", mode = "transactional", tx = month"#);
    assert_eq!(found.len(), 2, "not async, and no `&mut`: {found:?}");
}

#[test]
fn generics_must_show_in_a_parameter() {
    let with = |head: &str, clause: &str| {
        let function = format!("fn job{head} -> Result<(), Error> {clause} {{ Ok(()) }}");
        plan(r#"key = "j:<id>""#, &function).err().map_or(0, |faults| faults.len())
    };
    for (head, clause, faults) in [
        ("<T>(id: T)", "", 0),
        ("<T>(id: u8, other: Vec<Option<T>>)", "", 0),
        ("<const N: usize>(id: [u8; N])", "", 0),
        ("<I: Iterator<Item = T>, T>(id: u8, items: I)", "", 0),
        ("<F, T>(id: u8, make: F)", "where F: Fn(u8) -> T", 0),
        ("<'a>(id: &'a str)", "", 0),
        ("<T>(self: Arc<Svc<T>>, id: u8)", "", 0),
        ("<T>(id: u8)", "", 1),
        ("<T, const N: usize>(id: u8)", "", 2),
        ("<T, I: Into<T>>(id: I)", "", 1),
        ("<'t, T>(id: &'t str)", "", 1),
    ] {
        assert_eq!(with(head, clause), faults, "{head} {clause}");
    }
}

#[test]
fn borrowed_results_need_replay_false() {
    for (output, borrowed) in [
        ("Result<u8, E>", false),
        ("anyhow::Result<Vec<u8>>", false),
        ("Result<u8, Box<dyn Error + 'static>>", false),
        ("Lent<'a, u8>", false),
        ("Result<&str, E>", true),
        ("Result<Cow<'static, str>, E>", false),
        ("Result<(u8, Vec<borrow::Cow<'a, str>>), E>", false),
        ("Result<Vec<Lent<'a, str>>, E>", true),
        ("Result<(u8, Cow<'a, Lent<'a>>), E>", true),
        ("Result<Cow<'static, [&'static str]>, E>", true),
        ("Pin<Box<dyn Future<Output = Result<&'a str, E>> + Send + 'a>>", true),
        ("Pin<Box<dyn Future<Output = Result<u8, E>> + Send + 'a>>", false),
    ] {
        let function = format!("fn job<'a>(id: &'a str) -> {output} {{ body }}");
        assert_eq!(plan(r#"key = "j:<id>""#, &function).is_err(), borrowed, "{output}");
        assert!(plan(r#"key = "j:<id>", replay = false"#, &function).is_ok(), "{output}");
    }
}

#[test]
fn the_contract_tells_what_a_repeat_does() {
    let contract = |args: &str| {
        let plan = plan(args, "fn job(id: u64) -> Result<(), Error> { Ok(()) }");
        plan.map(|plan| plan.contract).unwrap_or_default()
    };
    for (args, words) in [
        (r#"key = "j:<id>""#, ["`j:<id>`", "`lock_first`", "`60s`", "`alert`", "forever"]),
        (
            r#"key = "j:<id>", on_stale = "retry", stale_after = "9m""#,
            ["`j:<id>`", "`9m`", "again", "`retry`", "forever"],
        ),
        (
            r#"key = "j:<id>", on_stale = probe(bank::was_charged)"#,
            ["`j:<id>`", "`60s`", "`bank::was_charged`", "`probe`", "forever"],
        ),
        (
            r#"key = "j:<id>", mode = "record_after""#,
            ["`j:<id>`", "`record_after`", "crash", "repeats", "`24h`"],
        ),
        (r#"key = "`:<id>", ttl = "2d""#, ["`` `:<id> ``", "`lock_first`", "`alert`", "suppresses", "`2d`"]),
    ] {
        for word in words {
            assert!(contract(args).contains(word), "{word} in {}", contract(args));
        }
    }
}

#[test]
fn no_input_makes_the_macro_panic() {
    let items = [
        "",
        "fn",
        "fn job()",
        "fn job(;",
        "struct X;",
        "fn job(id: u8) -> Result<(), E> {}",
        "pub",
        "#[x] fn f(self)",
        "async fn job(id: u8, tx: &mut X) -> Result<(), E> {}",
        "async fn job(self, tx: &mut, Tx(tx): Tx, _: &mut X) -> Result<(), E> {}",
    ];
    let args = [
        "",
        ",",
        "key",
        "key =",
        "key = ,",
        "= 5",
        "key(\"x\")",
        "ttl = \"\"",
        "\"x\"",
        "5, 5",
        "fingerprint = ((a))",
        "key = \"<a.self.r#b.0>\", ,",
        "mode = \"transactional\"",
        "mode = \"transactional\", tx =",
        "key = \"j:<tx>\", mode = \"transactional\", tx = r#type",
        "key = \"j:<id>\", mode = \"transactional\", tx = _, fingerprint = (tx)",
    ];
    for item in items {
        for args in args {
            let Ok(item) = item.parse::<TokenStream>() else { continue };
            drop(crate::attribute(args.parse().expect("tokens"), &item));
        }
    }
}

#[test]
fn phases_are_found_wherever_they_stand() {
    for (body, phased) in [
        ("", false),
        (r#"phase!("a", async { Ok(1) });"#, true),
        (r#"if x { jobs::phase! { "a", async { Ok(1) } } }"#, true),
        (r#"try_join!(async { vec![phase!["a", async { Ok(1) }]] });"#, true),
        (r#"let phase = "a"; phase(1); other!("a", async { Ok(1) });"#, false),
        (r#"fn inner() -> Result<u8, Error> { Ok(phase!("a", || Ok(1))) }"#, false),
        (
            r#"async fn inner<T>(_: [T; 2]) -> Result<u8, Error> { Ok(1) } phase!("a", async { Ok(1) });"#,
            true,
        ),
        (r#"let f: fn(u8) -> u8 = f; phase!("a", async { Ok(1) });"#, true),
    ] {
        let function = format!("async fn job(id: u64) -> Result<(), Error> {{ {body} Ok(()) }}");
        let plan = plan(r#"key = "j:<id>""#, &function).expect("no fault");
        assert_eq!(plan.phased, phased, "{body}");
    }
}

#[test]
fn a_function_inside_of_the_body_has_phases_of_its_own() {
    let inner = r#"fn inner() -> Result<u8, Error> { Ok(phase!("a", || Ok(1))) }"#;
    for args in [r#"key = "j:<id>""#, r#"key = "j:<id>", mode = "record_after""#] {
        let outer = if args.contains("mode") { "" } else { r#"phase!("a", async { Ok(1) });"# };
        let function = format!("async fn job(id: u64) -> Result<(), Error> {{ {inner} {outer} Ok(()) }}");
        assert!(plan(args, &function).is_ok(), "{args}");
    }
}

#[test]
fn a_faulty_phase_is_not_the_attributes_to_tell_of() {
    for phase in [
        r#"phase!("a", mode = "lock_frist", async { Ok(1) })"#,
        r#"phase!("a", mode = "lock_frist" || Ok(1))"#,
        "phase!(A, async { Ok(1) })",
        "phase!()",
        "phase!(a, b, c)",
    ] {
        let args = r#"key = "j:<id>", mode = "transactional""#;
        let function =
            format!("async fn job(id: u64, tx: &mut Tx) -> Result<(), Error> {{ {phase}; Ok(()) }}");
        assert!(plan(args, &function).is_ok(), "{phase}");
    }
}
