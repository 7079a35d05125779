//! Batches as JSON: one parameter, however many rows.

use serde::Serialize;

use crate::store::{ErrorClass, StoreError};

/// What every server takes in one statement, however low its limit.
#[cfg(feature = "mysql")]
const LARGEST: usize = 512 * 1024;

pub(crate) fn to_json(
    context: &'static str,
    value: &(impl Serialize + ?Sized),
) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::new(ErrorClass::Permanent, context, error))
}

/// The rows of a batch as JSON arrays, each with its rows: one array, unless that would be too long for a statement.
#[cfg(feature = "mysql")]
pub(crate) fn documents<'a, T: Serialize>(
    context: &'static str,
    rows: &'a [T],
) -> Result<Vec<(&'a [T], String)>, StoreError> {
    let mut documents = Vec::new();
    let (mut first, mut text) = (0, String::new());
    for (at, row) in rows.iter().enumerate() {
        let row = to_json(context, row)?;
        if at > first && text.len() + row.len() > LARGEST {
            documents.push((&rows[first..at], format!("[{text}]")));
            (first, text) = (at, String::new());
        }
        if at > first {
            text.push(',');
        }
        text.push_str(&row);
    }
    if first < rows.len() {
        documents.push((&rows[first..], format!("[{text}]")));
    }
    Ok(documents)
}

#[cfg(all(test, feature = "mysql"))]
mod tests {
    use super::*;

    fn cut<T: Serialize>(rows: &[T]) -> Vec<(usize, String)> {
        let documents = documents("", rows).unwrap_or_default();
        documents.into_iter().map(|(rows, json)| (rows.len(), json)).collect()
    }

    #[test]
    fn a_batch_is_one_array() {
        assert_eq!(cut::<u8>(&[]), []);
        assert_eq!(cut(&["a", "b", "c"]), [(3, r#"["a","b","c"]"#.to_owned())]);
    }

    #[test]
    fn what_is_too_long_for_one_statement_is_several() {
        let long = "x".repeat(LARGEST / 2);
        let lengths = |rows: &[&str]| cut(rows).iter().map(|(rows, _)| *rows).collect::<Vec<_>>();
        assert_eq!(lengths(&[&long, "b", &long, "d"]), [2, 2]);
        let huge = "x".repeat(LARGEST * 3);
        assert_eq!(lengths(&[&huge, &huge, "c"]), [1, 1, 1]);
        let whole: String = cut(&[&*long, "b", &long]).into_iter().map(|(_, json)| json).collect();
        assert_eq!(whole, format!(r#"["{long}","b"]["{long}"]"#));
    }
}
