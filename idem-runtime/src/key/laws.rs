//! What docs/keys.md says of keys, stated a second time and from that page alone: how a tuple of values is rendered,
//! and how it is read back from its key. What can be read back is told apart from everything else.

use std::{cell::Cell, collections::HashMap, hash::Hash, ops::Range, rc::Rc};

use idem_macros::KeyPart;
use proptest::{
    prelude::*,
    sample::select,
    test_runner::{RngAlgorithm, TestCaseResult, TestRng, TestRunner},
};
use sha2::{Digest as _, Sha256};

use super::{Key, KeyPart, KeyWriter, hex, render};

const FUNCTIONS: u32 = 1_700;
/// Many of them differ by a character alone.
const TUPLES: usize = 60;

#[derive(KeyPart, Clone, Debug, PartialEq, Eq, Hash)]
#[key_part(crate = crate)]
struct Name(String);

#[derive(KeyPart, Clone, Debug, PartialEq, Eq, Hash)]
#[key_part(crate = crate)]
struct Place {
    town: String,
    floor: i8,
}

#[derive(KeyPart, Clone, Debug, PartialEq, Eq, Hash)]
#[key_part(crate = crate)]
struct Home(Rc<Place>);

#[derive(KeyPart, Clone, Debug, PartialEq, Eq, Hash)]
#[key_part(crate = crate)]
struct Customer(Name, Home, Plan);

#[derive(KeyPart, Clone, Debug, PartialEq, Eq, Hash)]
#[key_part(crate = crate)]
struct Order {
    note: String,
    customer: Customer,
    to: Place,
}

#[derive(KeyPart, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[key_part(crate = crate)]
enum Plan {
    Free,
    #[key_part(rename = "a:b,c%2C d")]
    Paid,
    #[key_part(rename = ",")]
    Trial,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Value {
    Integer(i128),
    Flag(bool),
    Letter(char),
    Text(String),
    Key(Key),
    Plan(Plan),
    Name(Name),
    Place(Place),
    Home(Home),
    Customer(Customer),
    Order(Order),
}

impl KeyPart for Value {
    fn write(&self, out: &mut KeyWriter) {
        match self {
            Self::Integer(value) => value.write(out),
            Self::Flag(value) => value.write(out),
            Self::Letter(value) => value.write(out),
            Self::Text(value) => value.write(out),
            Self::Key(value) => value.write(out),
            Self::Plan(value) => value.write(out),
            Self::Name(value) => value.write(out),
            Self::Place(value) => value.write(out),
            Self::Home(value) => value.write(out),
            Self::Customer(value) => value.write(out),
            Self::Order(value) => value.write(out),
        }
    }
}

/// The page, as data: a value is a text, or the fields of a struct of several.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    Text(String),
    Fields(Vec<Shape>),
}

use Shape::{Fields, Text};

impl Plan {
    const ALL: [(Self, &str); 3] = [(Self::Free, "Free"), (Self::Paid, "a:b,c%2C d"), (Self::Trial, ",")];

    fn shape(self) -> Shape {
        Text(Self::ALL.into_iter().find(|(plan, _)| *plan == self).expect("a plan").1.to_owned())
    }
}

impl Place {
    fn shape(&self) -> Shape {
        Fields(vec![Text(self.town.clone()), Text(self.floor.to_string())])
    }
}

impl Customer {
    fn shape(&self) -> Shape {
        Fields(vec![Text(self.0.0.clone()), self.1.0.shape(), self.2.shape()])
    }
}

impl Value {
    fn shape(&self) -> Shape {
        match self {
            Self::Integer(value) => Text(value.to_string()),
            Self::Flag(value) => Text(value.to_string()),
            Self::Letter(value) => Text(value.to_string()),
            Self::Text(value) | Self::Name(Name(value)) => Text(value.clone()),
            Self::Key(value) => Text(value.to_string()),
            Self::Plan(value) => value.shape(),
            Self::Place(value) => value.shape(),
            Self::Home(value) => value.0.shape(),
            Self::Customer(value) => value.shape(),
            Self::Order(Order { note, customer, to }) => {
                Fields(vec![Text(note.clone()), customer.shape(), to.shape()])
            }
        }
    }
}

/// Whether the page has it escaped, in a field's text and elsewhere.
fn is_escaped(c: char, in_a_field: bool) -> bool {
    let white_space = matches!(u32::from(c),
        0x09..=0x0D | 0x20 | 0x85 | 0xA0 | 0x1680 | 0x2000..=0x200A | 0x2028 | 0x2029 | 0x202F | 0x205F | 0x3000);
    let control = matches!(u32::from(c), 0x00..=0x1F | 0x7F..=0x9F);
    ":|#/%<>".contains(c) || white_space || control || (in_a_field && c == ',')
}

fn escape(text: &str, special: impl Fn(char) -> bool) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if special(c) {
            escaped.extend(c.to_string().bytes().map(|byte| format!("%{byte:02X}")));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

fn unescape(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().expect("a first part").as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("two hex digits"));
        bytes.extend(part[2..].bytes());
    }
    String::from_utf8(bytes).expect("UTF-8")
}

impl Shape {
    /// As it stands in the key; `None` where the call is refused.
    fn write(&self) -> Option<String> {
        match self {
            Text(text) if text.is_empty() => None,
            Text(text) => Some(escape(text, |c| is_escaped(c, false))),
            Fields(fields) => {
                Some(fields.iter().map(Self::write_field).collect::<Option<Vec<_>>>()?.join(","))
            }
        }
    }

    fn write_field(&self) -> Option<String> {
        match self {
            Text(text) if text.is_empty() => None,
            Text(text) => Some(escape(text, |c| is_escaped(c, true))),
            Fields(_) => Some(escape(&self.write()?, |c| matches!(c, ',' | '%'))),
        }
    }

    /// Reads one that is made like `self`.
    fn read(&self, written: &str) -> Self {
        match self {
            Text(_) => Text(unescape(written)),
            Fields(fields) => {
                let parts: Vec<_> = written.split(',').collect();
                assert_eq!(parts.len(), fields.len(), "{written}");
                Fields(fields.iter().zip(parts).map(|(field, part)| field.read_field(part)).collect())
            }
        }
    }

    fn read_field(&self, written: &str) -> Self {
        match self {
            Text(_) => Text(unescape(written)),
            Fields(_) => self.read(&unescape(written)),
        }
    }
}

/// A template's fixed texts, and values for its placeholders.
#[derive(Debug)]
struct Function {
    texts: Vec<String>,
    tuples: Vec<Vec<Value>>,
}

/// The key of the page.
fn written(texts: &[String], tuple: &[Value]) -> Option<String> {
    let mut key = texts[0].clone();
    for (value, text) in tuple.iter().zip(&texts[1..]) {
        key = key + &value.shape().write()? + text;
    }
    Some(key)
}

/// The values in a key: each ends before the fixed text that leads to the next separator, which no value holds.
fn read(texts: &[String], like: &[Value], key: &str) -> Vec<Shape> {
    let is_separator = |c: char| ":|#".contains(c);
    let mut rest = key.strip_prefix(texts[0].as_str()).expect("the first text");
    let mut shapes = Vec::new();
    for (value, text) in like.iter().zip(&texts[1..]) {
        let lead = text.find(is_separator).unwrap_or(text.len());
        let end = rest.find(is_separator).unwrap_or(rest.len());
        let written = rest[..end].strip_suffix(&text[..lead]).expect("the text behind a value");
        shapes.push(value.shape().read(written));
        rest = rest[end..].strip_prefix(&text[lead..]).expect("the rest of that text");
    }
    assert_eq!(rest, "");
    shapes
}

/// The text that a row holds, as the page says it.
fn stored(key: &str) -> String {
    if key.len() <= 255 {
        return key.to_owned();
    }
    let mut head = String::new();
    let mut rest = key;
    // An escape is taken whole or not at all, as is a character; a namespace's `%:` is no escape.
    while let Some(first) = rest.chars().next() {
        let escape = first == '%' && rest[1..].starts_with(|c: char| c.is_ascii_hexdigit());
        let step = if escape { 3 } else { first.len_utf8() };
        if head.len() + step > 189 {
            break;
        }
        head.push_str(&rest[..step]);
        rest = &rest[step..];
    }
    format!("{head}%#{}", hex(&Sha256::digest(key)))
}

fn text() -> BoxedStrategy<String> {
    const NASTY: [&str; 32] = [
        ":", "|", "#", ",", ",", "%", "%", "/", "<", ">", "<a>", " ", "\t", "\n", "\0", "\u{7f}", "\u{85}",
        "\u{a0}", "\u{301}", "\u{200b}", "\u{2028}", "\u{3000}", "é", "e\u{301}", "語", "🦀", "%2C", "%25",
        "2C", "a", "b", "-",
    ];
    // A number is one draw, and the smaller it is the shorter the text.
    let of = |pieces: &'static [&'static str], numbers| {
        Range::prop_map(numbers, |mut number: usize| {
            let mut text = String::new();
            while number > 0 {
                text.push_str(pieces[(number - 1) % pieces.len()]);
                number = (number - 1) / pieces.len();
            }
            text
        })
    };
    let long = proptest::collection::vec(select(&NASTY[..]), 0..200).prop_map(|pieces| pieces.concat());
    // Of few characters, so that values come near each other; of many; and long ones.
    prop_oneof![12 => of(&[",", "%", ":", "a"], 0..85), 12 => of(&NASTY, 0..NASTY.len().pow(3)), 1 => long]
        .boxed()
}

/// Values of one type, since a parameter has one.
fn values() -> Vec<BoxedStrategy<Value>> {
    let plan = || select(&[Plan::Free, Plan::Paid, Plan::Trial][..]);
    let floor = || prop_oneof![-1..2_i8, any::<i8>()];
    let place = move || (text(), floor()).prop_map(|(town, floor)| Place { town, floor });
    let home = move || place().prop_map(|place| Home(Rc::new(place)));
    let customer =
        move || (text(), home(), plan()).prop_map(|(name, home, plan)| Customer(Name(name), home, plan));
    let order = (text(), customer(), place());
    let letters = || prop_oneof![select(&[':', ',', '%', '\u{85}', 'é'][..]), any::<char>()];
    let key = text().prop_filter_map("a key", |text| Key::from_text(&text).ok());
    vec![
        text().prop_map(Value::Text).boxed(),
        prop_oneof![-20..20_i128, any::<i128>()].prop_map(Value::Integer).boxed(),
        any::<bool>().prop_map(Value::Flag).boxed(),
        letters().prop_map(Value::Letter).boxed(),
        key.prop_map(Value::Key).boxed(),
        plan().prop_map(Value::Plan).boxed(),
        text().prop_map(|name| Value::Name(Name(name))).boxed(),
        place().prop_map(Value::Place).boxed(),
        home().prop_map(Value::Home).boxed(),
        customer().prop_map(Value::Customer).boxed(),
        order.prop_map(|(note, customer, to)| Value::Order(Order { note, customer, to })).boxed(),
    ]
}

fn functions() -> impl Strategy<Value = Function> {
    let first = select(&["b:", "k", "a:b|", "<", "-:x", "語#"][..]);
    let between = select(&[":", "|", "#", "-:", ":-", ",|,", "a#b", "2C:", "::", "é|"][..]);
    let last = select(&["", ":", "-", "#a", ",", "2C"][..]);
    let types = proptest::collection::vec(select(values()), 1..5);
    (first, proptest::collection::vec(between, 3), last, types).prop_flat_map(
        |(first, between, last, types)| {
            let between = between.into_iter().take(types.len() - 1);
            let texts = [first].into_iter().chain(between).chain([last]).map(str::to_owned).collect();
            let tuples = proptest::collection::vec(types, 1..TUPLES * 2);
            (Just(texts), tuples).prop_map(|(texts, tuples)| Function { texts, tuples })
        },
    )
}

/// How many tuples were looked at; how many of them were refused, and had a key too long for a row.
#[derive(Debug, Default)]
struct Seen {
    tuples: Cell<usize>,
    refused: Cell<usize>,
    long: Cell<usize>,
}

/// Each tuple's key is the page's, tells it from every other one, and holds it whole.
fn check(Function { texts, tuples }: &Function, seen: &Seen) -> TestCaseResult {
    let template: Vec<&'static str> = texts.iter().map(|text| &*text.clone().leak()).collect();
    let template: &'static [&'static str] = template.leak();
    let mut keys: HashMap<String, &[Value]> = HashMap::new();
    let mut rows: HashMap<String, String> = HashMap::new();
    for tuple in tuples {
        seen.tuples.update(|tuples| tuples + 1);
        let rendered = tuple.iter().fold(render(template), |key, value| key.part(value)).finish();
        let key = rendered.map(|key| key.to_string()).ok();
        prop_assert_eq!(&key, &written(texts, tuple), "{:?}", tuple);
        let Some(key) = key else {
            seen.refused.update(|refused| refused + 1);
            continue;
        };
        let shapes: Vec<_> = tuple.iter().map(Value::shape).collect();
        prop_assert_eq!(read(texts, tuple, &key), shapes, "{}", &key);
        let same = *keys.entry(key.clone()).or_insert(tuple);
        prop_assert_eq!(same, tuple.as_slice(), "both are {}", &key);

        let whole = Key::raw(&key).within((key.len() % 2 == 0).then_some("eu"));
        let (row, whole) = (whole.stored(), whole.as_str());
        prop_assert_eq!(&*row, stored(whole));
        let long = whole.len() > 255;
        prop_assert!(row.len() <= 255 && row.contains("%#") == long, "{}", row);
        seen.long.update(|count| count + usize::from(long));
        let same = rows.entry(row.to_string()).or_insert_with(|| whole.to_owned());
        prop_assert_eq!(&*same, whole, "both are stored as {}", row);
    }
    Ok(())
}

#[test]
fn no_two_tuples_render_one_key_and_each_key_is_what_the_page_says() {
    let config = ProptestConfig { cases: FUNCTIONS, failure_persistence: None, ..ProptestConfig::default() };
    // The same tuples each time: a failure is met again.
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::XorShift, &[7; 16]));
    let seen = Seen::default();
    let ran = runner.run(&functions(), |function| check(&function, &seen));
    ran.unwrap_or_else(|failure| panic!("{failure}"));
    let [tuples, refused, long] = [seen.tuples, seen.refused, seen.long].map(Cell::into_inner);
    assert!(tuples >= 100_000 && refused > 1_000 && long > 1_000, "{tuples}, {refused}, {long}");
}
