use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};

use super::{
    Scope, Template,
    laws::{self, tells_apart},
};

const PARAMETERS: [&str; 6] = ["self", "user_id", "month", "order", "t", "type"];

fn parse(source: &str) -> (Template, Vec<String>) {
    let parameters = PARAMETERS.map(str::to_owned);
    let scope = Scope { function: "charge", parameters: &parameters, singleton: false, tells_apart };
    let (template, faults) = Template::parse(source, &scope);
    let constant = template.is_constant() && !source.is_empty();
    let constant = constant.then(|| Template::constant_fault(source, &scope));
    let faults: Vec<_> = faults.into_iter().chain(constant).collect();
    let shown = faults.iter().map(|fault| fault.show(source, &faults)).collect();
    (template, shown)
}

#[test]
fn a_template_is_fixed_text_around_placeholders() {
    let cases: [(&str, &[&str], &[&str]); 14] = [
        ("b:<user_id>", &["b:", ""], &["user_id"]),
        ("b:<user_id>:<month>", &["b:", ":", ""], &["user_id", "month"]),
        ("b:<order.customer.id>|x", &["b:", "|x"], &["order.customer.id"]),
        ("b:<self.tenant>#<t.0.1>", &["b:", "#", ""], &["self.tenant", "t.0.1"]),
        ("b:<type>:<r#type>", &["b:", ":", ""], &["type", "type"]),
        ("<<b>>:<month>", &["<b>:", ""], &["month"]),
        ("<<<month>>>", &["<", ">"], &["month"]),
        ("b:<month>-<<:<t>", &["b:", "-<:", ""], &["month", "t"]),
        ("ключ:<month>", &["ключ:", ""], &["month"]),
        ("month:<user_id>", &["month:", ""], &["user_id"]),
        ("b:month:<month>", &["b:month:", ""], &["month"]),
        ("b:months:<user_id>", &["b:months:", ""], &["user_id"]),
        ("b:order:<user_id>", &["b:order:", ""], &["user_id"]),
        ("a{b}:<month>{", &["a{b}:", "{"], &["month"]),
    ];
    for (source, texts, names) in cases {
        let (template, faults) = parse(source);
        assert!(faults.is_empty(), "{source}: {faults:?}");
        assert_eq!(template.texts, texts, "{source}");
        assert_eq!(
            template.placeholders.iter().map(super::Placeholder::name).collect::<Vec<_>>(),
            names,
            "{source}"
        );
    }
}

/// The template, the part that is underlined, a piece of the message, a piece of the way out.
const FAULTS: &[(&str, &str, &str, &str)] = &[
    ("", "", "the key is empty", "`charge:<…>`"),
    ("nightly", "nightly", "no placeholder", "singleton"),
    ("b:user_id", "user_id", "the same in every call", "write `b:<user_id>`"),
    ("b:user_id:x", "user_id", "the parameter is written `<user_id>`", "write `b:<user_id>:x`"),
    ("b:<user_id>:month", "month", "is fixed text here", "write `b:<user_id>:<month>`, or another word"),
    ("b|user_id#<t>", "user_id", "is fixed text here", "write `b|<user_id>#<t>`, or another word"),
    ("b:@user_id", "@user_id", "one is written `<user_id>`", "write `b:<user_id>`"),
    ("b:{}", "{}", "is not a placeholder", "write `b:<user_id>`"),
    ("b:{usr}", "{usr}", "one is written `<usr>`", "write `b:<usr>`"),
    ("b:{user_id}", "{user_id}", "is not a placeholder", "write `b:<user_id>`"),
    ("b:{{user_id}}:<t>", "{{user_id}}", "is not a placeholder", "write `b:<user_id>:<t>`"),
    ("b:{order.id:?}:<t>", "{order.id:?}", "is not a placeholder", "write `b:<order.id>:<t>`"),
    ("b:$user_id:<t>", "$user_id", "is not a placeholder", "write `b:<user_id>:<t>`"),
    ("b:${user_id}", "${user_id}", "is not a placeholder", "write `b:<user_id>`"),
    ("b:[user_id]:<t>", "[user_id]", "is not a placeholder", "write `b:<user_id>:<t>`"),
    ("b:(user_id)|<t>", "(user_id)", "is not a placeholder", "write `b:<user_id>|<t>`"),
    ("b:‹user_id›:<t>", "‹user_id›", "is not a placeholder", "write `b:<user_id>:<t>`"),
    ("b:<t>:@order.id", "@order.id", "is not a placeholder", "write `b:<t>:<order.id>`"),
    ("b:%s", "%s", "is not a placeholder", "write `b:<user_id>`"),
    ("b:%(user)s:<t>", "%(user)s", "not a placeholder", "write `b:<user_id>:<t>`"),
    ("b:<user_id", "<user_id", "not closed", "write `b:<user_id>`"),
    ("b:<user_id:<month>", "<user_id", "not closed", "write `b:<user_id>:<month>`"),
    ("b:<user_id<month>", "<user_id", "not closed", "write `b:<user_id>:<month>`"),
    ("b:<nobody:<month>", "<nobody", "not closed", "`<<`"),
    ("b:<user_id<month>>", "<user_id<month>>", "inside a placeholder", "side by side"),
    ("b:<>", "<>", "names no parameter", "`user_id`"),
    ("b:< >", "< >", "names no parameter", "`user_id`"),
    ("b:< user_id >", "< user_id >", "not a parameter", "write `b:<user_id>`"),
    ("b:<user-id>", "<user-id>", "not a parameter", "write `b:<user_id>`"),
    ("b:<user_id:04>", "<user_id:04>", "not a parameter", "write `b:<user_id>`"),
    ("b:<&user_id>", "<&user_id>", "not a parameter", "write `b:<user_id>`"),
    ("b:<order.id()>", "<order.id()>", "not a parameter", "write `b:<order>`"),
    ("b:<user_id()>", "<user_id()>", "not a parameter", "in the caller"),
    ("b:<order..id>", "<order..id>", "not a parameter", "write `b:<order.id>`"),
    ("b:<t.00>", "<t.00>", "not a parameter", "in the caller"),
    ("b:<0>", "<0>", "not a parameter", "in the caller"),
    ("b:<month>>", ">", "stray", "write `b:<month>`"),
    ("b>:<month>", ">", "stray", "write `b>>:<month>` for a literal `>`"),
    ("<<b>:<month>", ">", "stray", "write `<<b>>:<month>`"),
    ("<month>", "<month>", "no fixed text before", "write `charge:<month>`"),
    ("b:<user_id><month>", "<user_id><month>", "no separator", "write `b:<user_id>:<month>`"),
    ("b:<user_id>-<month>", "<user_id>-<month>", "no separator", "write `b:<user_id>:<month>`"),
    ("b:<user_id>of<month>", "<user_id>of<month>", "no separator", "write `b:<user_id>:of<month>`"),
    ("b/<month>", "/", "no `/`", "write `b:<month>`"),
    ("100%:<month>", "%", "no `%`", "write `100:<month>`"),
    ("a  b:<month>", "  ", "no white space", "write `a-b:<month>`"),
    (" b:<month>", " ", "no white space", "write `b:<month>`"),
    ("b\n  :<month>", "\\n  ", "no white space", "write `b:<month>`"),
    ("b:\n  <month>", "\\n  ", "no white space", "write `b:<month>`"),
    ("b\u{7}:<month>", "\\u{7}", "no control character", "write `b:<month>`"),
];

#[test]
fn each_fault_is_shown_where_it_is_and_with_a_way_out() {
    for (source, under, fact, remedy) in FAULTS {
        let (_, faults) = parse(source);
        let [shown] = &faults[..] else { panic!("{source}: not one fault but {faults:#?}") };
        assert!(shown.lines().next().is_some_and(|line| line.contains(fact)), "{source}: {shown}");
        assert!(shown.lines().last().is_some_and(|line| line.contains(remedy)), "{source}: {shown}");
        assert_eq!(underlined(shown), *under, "{source}: {shown}");
    }
}

/// The part of the template above the carets.
fn underlined(shown: &str) -> String {
    let lines: Vec<&str> = shown.lines().collect();
    let Some(at) = lines.iter().position(|line| line.contains('^')) else { return String::new() };
    lines[at - 1].chars().zip(lines[at].chars()).filter(|(_, mark)| *mark == '^').map(|(c, _)| c).collect()
}

#[test]
fn fixed_text_has_a_limit_in_bytes() {
    let longest = format!("{}:<month>", "ü".repeat(94));
    assert!(parse(&longest).1.is_empty());
    assert!(parse(&format!("{longest}x")).1[0].contains("190 bytes long, and 189 is the most"));
}

#[test]
fn independent_faults_are_all_shown() {
    let (_, faults) = parse("a b/<usr-id>:<month><type>:<t");
    assert_eq!(faults.len(), 5, "{faults:#?}");
}

/// Every text of up to four of these pieces.
fn texts(pieces: [&'static str; 10]) -> impl Iterator<Item = String> {
    (0..=4_u32).flat_map(move |length| {
        (0..pieces.len().pow(length)).map(move |number| {
            let digits = (0..length).map(|place| number / pieces.len().pow(place) % pieces.len());
            digits.map(|digit| pieces[digit]).collect()
        })
    })
}

#[test]
fn each_short_text_is_understood_or_its_faults_are_mended_by_what_they_say() {
    texts(["<t>", "<", ">", "t", ":", "/", "{", "}", "%", "$"]).for_each(|source| laws::check(&source));
    texts(["<t>", "<t", ">>", "t", ":", ".", "/", "-", "  ", "%"]).for_each(|source| laws::check(&source));
}

/// What templates are made of, rightly and wrongly.
const PIECES: [&str; 40] = [
    "<t>",
    "<user_id>",
    "<order.customer.id>",
    "<self.x>",
    "<r#type>",
    "<t.0>",
    "<nobody>",
    "<user-id>",
    "< t >",
    "<>",
    "<",
    ">",
    "<<",
    ">>",
    ":",
    "|",
    "#",
    "-",
    ".",
    "_",
    "/",
    "%",
    "%s",
    "%(t)s",
    "{}",
    "{t}",
    "{{t}}",
    "${t}",
    "$t",
    "{",
    "}",
    " ",
    "\n",
    "\u{7}",
    "\u{a0}",
    "é",
    "\u{301}",
    "b",
    "month",
    "r#",
];

#[test]
fn any_text_is_understood_or_its_faults_are_mended_by_what_they_say() {
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..10);
    let texts = prop_oneof![4 => pieces.prop_map(|pieces| pieces.concat()), 1 => any::<String>()];
    // The same texts each time; the fuzz target looks for others.
    let config = ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::XorShift, &[7; 16]));
    let ran = runner.run(&texts, |source| {
        laws::check(&source);
        Ok(())
    });
    ran.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn one_correction_mends_all_faults() {
    let (_, faults) = parse("{user_id}{month}/%s");
    assert_eq!(faults.len(), 4, "{faults:#?}");
    for shown in faults {
        assert!(shown.ends_with("write `charge:<user_id>:<month>:<order>`"), "{shown}");
    }
}
