//! The faults of one macro call, gathered so that independent ones are reported together.

use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::quote;

/// Gathers faults until [`finish`](Self::finish) hands them over; dropping it unread is a bug.
#[must_use]
#[derive(Default)]
pub(crate) struct Errors {
    found: Option<syn::Error>,
    #[cfg(test)]
    read: bool,
}

impl Errors {
    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.found {
            Some(found) => found.combine(error),
            none => *none = Some(error),
        }
    }

    pub(crate) fn at(&mut self, span: Span, message: impl Display) {
        self.push(syn::Error::new(span, message));
    }

    /// The value, or `None` with its error gathered.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn finish(mut self) -> syn::Result<()> {
        #[cfg(test)]
        {
            self.read = true;
        }
        self.found.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
impl Drop for Errors {
    fn drop(&mut self) {
        assert!(self.read || std::thread::panicking(), "an accumulator of errors was dropped unread");
    }
}

/// The user's own item, unchanged, then the faults: the editor keeps working and callers see no follow-up errors.
pub(crate) fn beside(item: &TokenStream, error: &syn::Error) -> TokenStream {
    let errors = error.to_compile_error();
    quote!(#item #errors)
}

/// `` `a`, `b`, `c` ``, or `none` for no names at all.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}

/// `` ; did you mean `month`? `` for a near miss among the legal words, and `otherwise` for anything else.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    legal: impl IntoIterator<Item = &'a str>,
    otherwise: &str,
) -> String {
    nearest(word, legal).map_or_else(|| otherwise.to_owned(), |near| format!("; did you mean `{near}`?"))
}

/// The legal word within a third of edits of `word`, so that `mod` finds `mode` and `foo` finds nothing.
pub(crate) fn nearest<'a>(word: &str, legal: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let limit = (word.chars().count() / 3).max(1);
    legal
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace, swap of neighbours) from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![(0..=to.len()).collect::<Vec<_>>()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replace = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::{Errors, distance, nearest};

    #[test]
    fn edits_are_counted() {
        for (from, to, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("mode", "mode", 0),
            ("mod", "mode", 1),
            ("lock_frist", "lock_first", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(from, to), edits, "{from} → {to}");
            assert_eq!(distance(to, from), edits, "{to} → {from}");
        }
    }

    #[test]
    fn a_near_miss_is_found_and_a_stranger_is_not() {
        let legal = ["user_id", "month", "amount"];
        assert_eq!(nearest("usr_id", legal), Some("user_id"));
        assert_eq!(nearest("USER_ID", legal), Some("user_id"));
        assert_eq!(nearest("mnoth", legal), Some("month"));
        assert_eq!(nearest("tenant", legal), None);
        assert_eq!(nearest("x", legal), None);
    }

    #[test]
    #[should_panic(expected = "dropped unread")]
    fn an_unread_accumulator_panics() {
        drop(Errors::default());
    }
}
