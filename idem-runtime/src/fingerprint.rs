//! What must be equal under an equal key: a digest over a canonical form of some arguments.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{key::hex, result::check_faithful};

/// A value that a fingerprint can cover: whatever serde can serialize.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a fingerprint",
    label = "does not implement `serde::Serialize`",
    note = "derive `Serialize` for it, or name the fields that matter: `fingerprint = (amount.cents)`"
)]
pub trait Fingerprint {
    /// The value as JSON text, the keys of its objects sorted.
    ///
    /// # Errors
    ///
    /// What the value's `Serialize` reports, and a value that JSON writes as another one: NaN and infinity, `Some(None)`.
    fn canonical(&self) -> Result<String, serde_json::Error>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + ?Sized> Fingerprint for T {
    fn canonical(&self) -> Result<String, serde_json::Error> {
        check_faithful(self)?;
        // As text: a `serde_json::Value` has no numbers of 128 bits.
        let json = serde_json::to_string(self)?;
        let mut sorted = String::with_capacity(json.len());
        sort(&json, &mut sorted);
        Ok(sorted)
    }
}

/// A fingerprint in the making.
#[derive(Debug, Default)]
pub(crate) struct Fingerprinter(Option<Sha256>);

impl Fingerprinter {
    pub(crate) fn add(&mut self, canonical: &str) {
        let digest = self.0.get_or_insert_with(Sha256::new);
        digest.update(canonical.as_bytes());
        digest.update([0]);
    }

    /// The digest in lower-case hex, where anything was added.
    pub(crate) fn finish(self) -> Option<String> {
        self.0.map(|digest| hex(&digest.finalize()))
    }
}

/// Copies the JSON value that `json` begins with, the keys of its objects sorted; gives what follows it. `json` is
/// what `serde_json` writes: valid, and without white space.
fn sort<'a>(json: &'a str, out: &mut String) -> &'a str {
    if let Some(members) = json.strip_prefix('{') {
        let mut sorted = Vec::new();
        let rest = each(members, '}', |member| {
            let (name, rest) = member.split_at(scalar(member));
            let mut value = String::new();
            let rest = sort(rest.strip_prefix(':').unwrap_or(rest), &mut value);
            sorted.push((name, value));
            rest
        });
        sorted.sort();
        out.push('{');
        for (at, (name, value)) in sorted.iter().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            out.push_str(name);
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        rest
    } else if let Some(items) = json.strip_prefix('[') {
        out.push('[');
        let rest = each(items, ']', |item| {
            out.push_str(if out.ends_with('[') { "" } else { "," });
            sort(item, out)
        });
        out.push(']');
        rest
    } else {
        let (value, rest) = json.split_at(scalar(json));
        out.push_str(value);
        rest
    }
}

/// Reads what stands between commas, up to the closing bracket; gives what follows that.
fn each<'a>(json: &'a str, close: char, mut read: impl FnMut(&'a str) -> &'a str) -> &'a str {
    let mut json = json;
    loop {
        if let Some(rest) = json.strip_prefix(close) {
            return rest;
        }
        if json.is_empty() {
            return json;
        }
        json = read(json.strip_prefix(',').unwrap_or(json));
    }
}

/// How long the text, number or word is that `json` begins with.
fn scalar(json: &str) -> usize {
    if !json.starts_with('"') {
        return json.find([',', ':', '}', ']']).unwrap_or(json.len());
    }
    let mut escaped = false;
    let end = json.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(json.len(), |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn print(value: &impl Serialize) -> Option<String> {
        let mut printer = Fingerprinter::default();
        printer.add(&value.canonical().expect("serializes"));
        printer.finish()
    }

    #[test]
    fn the_order_of_a_map_does_not_matter() {
        let forth: HashMap<u32, u32> = (0..50).map(|n| (n, n)).collect();
        let back: HashMap<u32, u32> = (0..50).rev().map(|n| (n, n)).collect();
        assert_eq!(print(&forth), print(&back));
    }

    #[test]
    fn a_value_is_written_as_it_is_but_for_the_order_of_its_names() {
        let json = serde_json::json!({
            "b": [1, [], {}, [[2], {"y": null, "x": "}],\"\\"}], -0.5e-7],
            "a\\": {"\"": "\\", ",": ":"},
            "": true,
        });
        let text = json.canonical().expect("serializes");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("still JSON"), json);
        assert_eq!(HashMap::from([("b", 1), ("a", 2)]).canonical().expect("serializes"), r#"{"a":2,"b":1}"#);
        assert_eq!([[(); 0]; 2].canonical().expect("serializes"), "[[],[]]");
    }

    #[test]
    fn large_numbers_are_whole() {
        assert_eq!(u128::MAX.canonical().expect("serializes"), u128::MAX.to_string());
        assert_ne!(print(&u128::MAX), print(&(u128::MAX - 1)));
        assert_ne!(print(&i128::MIN), print(&(i128::MIN + 1)));
    }

    #[test]
    fn what_json_would_write_as_null_is_refused() {
        assert!(f64::NAN.canonical().is_err());
        assert!(Some(None::<u8>).canonical().is_err());
        assert!(None::<u8>.canonical().is_ok());
    }

    #[test]
    fn different_values_differ() {
        assert_ne!(print(&("a", "b")), print(&("ab", "")));
        assert_ne!(print(&1), print(&"1"));
        assert_eq!(Fingerprinter::default().finish(), None);
    }
}
