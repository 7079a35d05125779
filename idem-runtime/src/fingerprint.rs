//! What must be equal under an equal key: a digest over a canonical form of some arguments.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::key::hex;

/// A value that a fingerprint can cover: whatever serde can serialize.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a fingerprint",
    label = "does not implement `serde::Serialize`",
    note = "derive `Serialize` for it, or name the fields that matter: `fingerprint = (amount.cents)`"
)]
pub trait Fingerprint {
    /// The value as JSON, whose object keys are sorted before it is hashed.
    ///
    /// # Errors
    ///
    /// What the value's `Serialize` reports.
    fn canonical(&self) -> Result<Value, serde_json::Error>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + ?Sized> Fingerprint for T {
    fn canonical(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }
}

/// A fingerprint in the making.
#[derive(Debug, Default)]
pub(crate) struct Fingerprinter(Option<Sha256>);

impl Fingerprinter {
    pub(crate) fn add(&mut self, value: &Value) {
        let digest = self.0.get_or_insert_with(Sha256::new);
        let mut text = String::new();
        write_sorted(value, &mut text);
        digest.update(text.as_bytes());
        digest.update([0]);
    }

    /// The digest in lower-case hex, where anything was added.
    pub(crate) fn finish(self) -> Option<String> {
        self.0.map(|digest| hex(&digest.finalize()))
    }
}

/// Writes JSON with sorted object keys, whatever order `serde_json`'s features give its maps.
fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(name, _)| name.as_str());
            out.push('{');
            for (name, value) in entries {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write_sorted(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_sorted(item, out);
                out.push(',');
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
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
    fn different_values_differ() {
        assert_ne!(print(&("a", "b")), print(&("ab", "")));
        assert_ne!(print(&1), print(&"1"));
        assert_eq!(Fingerprinter::default().finish(), None);
    }
}
