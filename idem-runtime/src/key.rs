//! Keys: rendered from a template so that no two argument tuples meet, and what may stand in one.

#[cfg(any(feature = "chrono", feature = "time", feature = "jiff"))]
mod dates;
#[cfg(test)]
mod laws;
pub mod refused;

use std::{
    fmt::{self, Display, Write as _},
    num::NonZero,
    rc::Rc,
    sync::Arc,
};

use sha2::{Digest, Sha256};

use crate::error::Error;

/// The longest key a row can hold, in bytes, namespace and phase included.
pub(crate) const MAX_BYTES: usize = 255;
/// How much of a longer key stays readable, in bytes.
const HEAD_BYTES: usize = 189;
/// Stands between a namespace and the key, and in no escaped text.
const NAMESPACE_MARK: &str = "%:";
/// Stands before the digest of a long key, and in no escaped text.
const DIGEST_MARK: &str = "%#";
/// Stands between a job's key and the name of a phase, and in no escaped text.
const PHASE_MARK: char = '/';

/// An idempotency key: what a job is for.
///
/// Rendered by an annotated function (or by its `key_fn`), or taken as text with [`Key::from_text`]. Two keys are
/// equal exactly if their texts are. `Display` gives the whole text, however long.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// Takes a key as it is written in a row, in a log or on a command line: already escaped.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`] for an empty text, and for one with control characters.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        let reason = if text.is_empty() {
            "a key is not empty"
        } else if text.contains(char::is_control) {
            "a key holds no control character; in a rendered key they are written `%XX`"
        } else {
            return Ok(Self(text.into()));
        };
        Err(Error::InvalidKey { template: text.to_owned(), reason: reason.to_owned() })
    }

    /// A key that no template renders.
    pub(crate) fn raw(text: &str) -> Self {
        Self(text.into())
    }

    /// The whole text of the key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key under a namespace; a key that stands under it already stays as it is.
    pub(crate) fn within(&self, namespace: Option<&str>) -> Self {
        let Some(namespace) = namespace else { return self.clone() };
        let prefix = format!("{namespace}{NAMESPACE_MARK}");
        if self.0.starts_with(&prefix) { self.clone() } else { Self(format!("{prefix}{}", self.0).into()) }
    }

    /// The key of a phase of this one's job.
    pub(crate) fn phase(&self, name: &Self) -> Self {
        Self(format!("{}{PHASE_MARK}{}", self.0, name.0).into())
    }

    /// The text that stands in the row: the key itself, or its head and digest where it is too long.
    pub(crate) fn stored(&self) -> Arc<str> {
        if self.0.len() <= MAX_BYTES {
            return Arc::clone(&self.0);
        }
        format!("{}{DIGEST_MARK}{}", head(&self.0), hex(&Sha256::digest(self.0.as_bytes()))).into()
    }

    /// The first 32 hex digits of the SHA-256 of the key, a zero byte and the label.
    pub(crate) fn derive(&self, label: &str) -> String {
        let mut digest = Sha256::new();
        digest.update(self.0.as_bytes());
        digest.update([0]);
        digest.update(label.as_bytes());
        let mut text = hex(&digest.finalize());
        text.truncate(32);
        text
    }
}

impl Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0)
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl serde::Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// What a key that is too long keeps of its text.
fn head(text: &str) -> &str {
    let mut end = text.floor_char_boundary(HEAD_BYTES);
    for back in 1..=2 {
        if end >= back && text.as_bytes()[end - back] == b'%' {
            end -= back;
            break;
        }
    }
    &text[..end]
}

/// The bounds between which the stored keys of a job's phases lie, neither included: a phase's key is the job's, `/` and
/// its name, and `0` is what follows `/`.
pub(crate) fn phases_of(stored: &str) -> (String, String) {
    (format!("{stored}{PHASE_MARK}"), format!("{stored}0"))
}

/// The bounds between which those lie that are too long to be stored as they are, where the job's key is so long that
/// the mark before the name is not among what they keep. Those of other jobs lie there as well.
pub(crate) fn long_phases_of(stored: &str) -> Option<(String, String)> {
    let head = head(stored);
    (stored.len() >= HEAD_BYTES).then(|| (format!("{head}{DIGEST_MARK}"), format!("{head}%$")))
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A key in the making: a template's fixed texts, with the values as they come.
#[doc(hidden)]
#[derive(Debug)]
#[must_use]
pub struct Rendering {
    template: &'static [&'static str],
    writer: KeyWriter,
    parts: usize,
    problem: Option<String>,
}

/// Begins the key of a template.
#[doc(hidden)]
pub fn render(template: &'static [&'static str]) -> Rendering {
    let mut writer = KeyWriter::new(String::with_capacity(64), false);
    writer.text.push_str(template.first().copied().unwrap_or_default());
    Rendering { template, writer, parts: 0, problem: None }
}

impl Rendering {
    /// Writes the next placeholder's value and the fixed text behind it.
    pub fn part(mut self, value: &dyn KeyPart) -> Self {
        let start = self.writer.text.len();
        value.write(&mut self.writer);
        self.parts += 1;
        if self.writer.text.len() == start || self.writer.has_empty_field {
            self.problem.get_or_insert_with(|| {
                format!(
                    "the value of placeholder {} is empty, so different jobs would share a key",
                    self.parts
                )
            });
        }
        self.writer.text.push_str(self.template.get(self.parts).copied().unwrap_or_default());
        self
    }

    /// The finished key.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`] where a value was empty.
    pub fn finish(self) -> Result<Key, Error> {
        match self.problem {
            Some(reason) => Err(Error::InvalidKey { template: self.template.join("<>"), reason }),
            None => Ok(Key(self.writer.text.into())),
        }
    }
}

/// Where a [`KeyPart`] writes its value. Whatever would blur the key's structure is escaped as `%XX`.
#[derive(Debug)]
pub struct KeyWriter {
    text: String,
    /// Whether this writes a field of a struct, where `,` has a meaning.
    nested: bool,
    /// Whether a struct was written here.
    compound: bool,
    /// Whether it has an empty field, itself or inside of another.
    has_empty_field: bool,
}

impl KeyWriter {
    fn new(text: String, nested: bool) -> Self {
        Self { text, nested, compound: false, has_empty_field: false }
    }

    /// Writes a text. Several writes of one value simply follow one another.
    pub fn write_str(&mut self, text: &str) {
        let nested = self.nested;
        self.escape(text, |c| {
            matches!(c, ':' | '|' | '#' | '/' | '%' | '<' | '>')
                || (nested && c == ',')
                || c.is_whitespace()
                || c.is_control()
        });
    }

    /// Writes a value as its `Display` shows it.
    ///
    /// The text must be the same for equal values on every run and every version of the program.
    pub fn write_display(&mut self, value: &dyn Display) {
        let mut escaping = Escaping(self);
        // Writing into memory does not fail; a `Display` that reports an error has written what it has.
        let _ = write!(escaping, "{value}");
    }

    /// Writes the fields of a struct, joined by `,` and escaped within.
    pub fn fields(&mut self, fields: &[&dyn KeyPart]) {
        for (at, field) in fields.iter().enumerate() {
            if at > 0 {
                self.text.push(',');
            }
            let mut inner = KeyWriter::new(String::new(), true);
            field.write(&mut inner);
            self.has_empty_field |= inner.text.is_empty() || inner.has_empty_field;
            if inner.compound {
                self.escape(&inner.text, |c| matches!(c, ',' | '%'));
            } else {
                self.text.push_str(&inner.text);
            }
        }
        self.compound = true;
    }

    fn escape(&mut self, text: &str, special: impl Fn(char) -> bool) {
        let mut rest = text;
        while let Some(at) = rest.find(&special) {
            self.text.push_str(&rest[..at]);
            let width = rest[at..].chars().next().map_or(1, char::len_utf8);
            for byte in &rest.as_bytes()[at..at + width] {
                let _ = write!(self.text, "%{byte:02X}");
            }
            rest = &rest[at + width..];
        }
        self.text.push_str(rest);
    }
}

struct Escaping<'a>(&'a mut KeyWriter);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(text);
        Ok(())
    }
}

/// A value that can stand in an idempotency key.
///
/// Implemented for integers, `bool`, `char`, strings, pointers to these and, with the features of the same name,
/// `uuid`, `chrono`, `time` and `jiff`. For a type of your own derive it:
///
/// ```
/// use idem_runtime::KeyPart;
///
/// #[derive(KeyPart)]
/// struct UserId(u64);
/// ```
///
/// or write it by hand, where the type has a spelling of its own:
///
/// ```
/// use idem_runtime::{KeyPart, KeyWriter};
///
/// struct Month { year: u16, month: u8 }
///
/// impl KeyPart for Month {
///     fn write(&self, out: &mut KeyWriter) {
///         out.write_display(&format_args!("{:04}-{:02}", self.year, self.month));
///     }
/// }
/// ```
///
/// Two different values must write two different texts, and the same value the same text in every version of the
/// program: the text is the stored identity.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of an idempotency key",
    label = "not a `KeyPart`",
    note = "for a type of your own write `#[derive(KeyPart)]`",
    note = "for types of `uuid`, `chrono`, `time` and `jiff` turn on the feature of that name of `idem-runtime`",
    note = "of any other type pass an id, or a text that is the same for the same intent"
)]
pub trait KeyPart {
    /// Writes the value.
    fn write(&self, out: &mut KeyWriter);
}

macro_rules! displayed {
    ($($type:ty),* $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl KeyPart for $type {
            fn write(&self, out: &mut KeyWriter) {
                out.write_display(self);
            }
        }
        #[diagnostic::do_not_recommend]
        impl KeyPart for NonZero<$type> {
            fn write(&self, out: &mut KeyWriter) {
                out.write_display(self);
            }
        }
    )*};
}
displayed!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

#[diagnostic::do_not_recommend]
impl KeyPart for bool {
    fn write(&self, out: &mut KeyWriter) {
        out.write_str(if *self { "true" } else { "false" });
    }
}

#[diagnostic::do_not_recommend]
impl KeyPart for char {
    fn write(&self, out: &mut KeyWriter) {
        out.write_str(self.encode_utf8(&mut [0; 4]));
    }
}

#[diagnostic::do_not_recommend]
impl KeyPart for str {
    fn write(&self, out: &mut KeyWriter) {
        out.write_str(self);
    }
}

#[diagnostic::do_not_recommend]
impl KeyPart for String {
    fn write(&self, out: &mut KeyWriter) {
        out.write_str(self);
    }
}

#[diagnostic::do_not_recommend]
impl KeyPart for Key {
    fn write(&self, out: &mut KeyWriter) {
        out.write_str(self.as_str());
    }
}

macro_rules! pointers {
    ($($pointer:ty),* $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: KeyPart + ?Sized> KeyPart for $pointer {
            fn write(&self, out: &mut KeyWriter) {
                (**self).write(out);
            }
        }
    )*};
}
pointers!(&T, &mut T, Box<T>, Rc<T>, Arc<T>);

#[diagnostic::do_not_recommend]
impl<T: KeyPart + ToOwned + ?Sized> KeyPart for std::borrow::Cow<'_, T> {
    fn write(&self, out: &mut KeyWriter) {
        (**self).write(out);
    }
}

#[cfg(feature = "uuid")]
#[diagnostic::do_not_recommend]
impl KeyPart for uuid::Uuid {
    fn write(&self, out: &mut KeyWriter) {
        out.write_display(&self.hyphenated());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[&str] = &["r:", ":", ""];

    fn two(a: &str, b: &str) -> String {
        render(TWO).part(&a).part(&b).finish().map_or_else(|error| error.to_string(), |key| key.to_string())
    }

    struct Pair(&'static str, &'static str);
    impl KeyPart for Pair {
        fn write(&self, out: &mut KeyWriter) {
            out.fields(&[&self.0, &self.1]);
        }
    }
    struct Nested(Pair, Pair);
    impl KeyPart for Nested {
        fn write(&self, out: &mut KeyWriter) {
            out.fields(&[&self.0, &self.1]);
        }
    }

    fn one<K: KeyPart>(value: &K) -> String {
        render(&["k:", ""]).part(value).finish().map_or_else(|error| error.to_string(), |key| key.to_string())
    }

    #[test]
    fn plain_values_stay_readable() {
        assert_eq!(two("42", "2024-06"), "r:42:2024-06");
        assert_eq!(one(&Pair("a", "b")), "k:a,b");
        assert_eq!(one(&"a,b"), "k:a,b");
        assert_eq!(one(&NonZero::<u8>::MIN), "k:1");
    }

    #[test]
    fn what_would_blur_the_structure_is_escaped() {
        assert_eq!(two("1:2", "3"), "r:1%3A2:3");
        assert_eq!(two("1", "2:3"), "r:1:2%3A3");
        assert_eq!(two("%3A", "<b>"), "r:%253A:%3Cb%3E");
        assert_eq!(two("a b", "é\u{a0}"), "r:a%20b:é%C2%A0");
        assert_eq!(one(&Pair("a,b", "c")), "k:a%2Cb,c");
        assert_eq!(one(&Nested(Pair("a", "b"), Pair("c,", "d:"))), "k:a%2Cb,c%252C%2Cd%253A");
    }

    #[test]
    fn an_empty_value_is_refused() {
        assert!(two("", "3").contains("placeholder 1 is empty"));
        assert!(one(&Pair("", "b")).contains("is empty"));
        assert!(one(&Nested(Pair("a", ""), Pair("b", "c"))).contains("is empty"));
    }

    #[test]
    fn a_long_key_keeps_a_readable_head_and_a_digest_of_the_whole() {
        let long = |tail: &str| {
            let key = Key(format!("k:{}{tail}", "x".repeat(300)).into());
            key.stored().to_string()
        };
        let (a, b) = (long("a"), long("b"));
        assert_ne!(a, b);
        assert_eq!(a.len(), 255);
        assert_eq!(&a[189..191], "%#");
    }

    #[test]
    fn a_long_key_is_cut_on_a_character_and_outside_of_an_escape() {
        for pad in 180..190 {
            for filler in ["%3A", "é", "%E2%80%A8"] {
                let key = Key(format!("{}{}", "x".repeat(pad), filler.repeat(60)).into());
                let stored = key.stored();
                let head = stored.split("%#").next().unwrap_or_default();
                assert!(head.len() <= 189);
                let unfinished = head.rfind('%').is_some_and(|at| head.len() - at < 3);
                assert!(!unfinished, "{head}");
            }
        }
    }

    #[test]
    fn a_namespace_stands_before_the_key_once() {
        let key = Key("k:1".into());
        let within = key.within(Some("eu"));
        assert_eq!(within.as_str(), "eu%:k:1");
        assert_eq!(within.within(Some("eu")), within);
    }

    #[test]
    fn a_derived_key_never_changes() {
        let key = Key("billing:42:2024-06".into());
        assert_eq!(key.derive("stripe"), "a9dbba8f5839d38f242efcac77d84443");
    }
}
