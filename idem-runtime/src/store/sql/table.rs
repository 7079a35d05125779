//! The table's name, checked and quoted, and the statements that carry it.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use crate::{error::Error, store::StoreOptions};

const DEFAULT: &str = "idempotency_keys";
/// What Postgres keeps of a name is 63 bytes; the companions' names are longer by `_expires`.
const MAX_BYTES: usize = 63 - "_expires".len();

/// Where the rows are.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    schema: Option<String>,
    name: String,
    quote: char,
}

/// A statement with the table's name in its place.
#[derive(Debug, Clone)]
pub(crate) struct Sql(Arc<str>);

impl Table {
    pub(crate) fn of(options: &StoreOptions, quote: char) -> Result<Self, Error> {
        let table = options.table.as_deref().unwrap_or(DEFAULT);
        let (schema, name) = match (&options.schema, table.split_once('.')) {
            (schema, None) => (schema.as_deref(), table),
            (None, Some((schema, name))) => (Some(schema), name),
            (Some(given), Some((schema, name))) if given == schema => (Some(schema), name),
            (Some(given), Some((schema, _))) => {
                return Err(Error::config(format!(
                    "the table `{table}` names the schema `{schema}`, and the schema is set to `{given}`; say it once"
                )));
            }
        };
        for part in schema.into_iter().chain([name]) {
            if !is_identifier(part) {
                return Err(Error::config(format!(
                    "`{part}` cannot name a table or schema; use letters, digits, `_`, `-` and `$`, at most \
                     {MAX_BYTES} bytes"
                )));
            }
        }
        Ok(Self { schema: schema.map(str::to_owned), name: name.to_owned(), quote })
    }

    /// The same table, in a schema that the database named. One whose name needs more than quotes stays unnamed.
    #[cfg(feature = "postgres")]
    pub(crate) fn within(&self, schema: &str) -> Self {
        let schema = if is_identifier(schema) { Some(schema.to_owned()) } else { self.schema.clone() };
        Self { schema, ..self.clone() }
    }

    /// The quoted name of the table, or of a companion of it.
    pub(crate) fn quoted(&self, suffix: &str) -> String {
        let q = self.quote;
        match &self.schema {
            Some(schema) => format!("{q}{schema}{q}.{q}{}{suffix}{q}", self.name),
            None => format!("{q}{}{suffix}{q}", self.name),
        }
    }

    /// A template's text with the names in their places.
    pub(crate) fn fill(&self, template: &str) -> String {
        let q = self.quote;
        template
            .replace("{table}", &self.quoted(""))
            .replace("{audit}", &self.quoted("_audit"))
            .replace("{schema}", &self.quoted("_schema"))
            .replace("{expires}", &format!("{q}{}_expires{q}", self.name))
            .replace("{claims}", &format!("{q}{}_claims{q}", self.name))
            .replace("{audited}", &format!("{q}{}_audited{q}", self.name))
    }

    /// A statement from its template.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn sql(&self, template: &str) -> Sql {
        Sql::of(self.fill(template))
    }
}

#[cfg(any(feature = "sqlite", feature = "mysql"))]
impl Table {
    pub(crate) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The name without its schema.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(feature = "sqlite")]
impl Table {
    pub(crate) fn without_schema(self) -> Self {
        Self { schema: None, ..self }
    }
}

fn is_identifier(name: &str) -> bool {
    (1..=MAX_BYTES).contains(&name.len())
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))
}

impl Sql {
    /// A text that was filled from a template.
    pub(crate) fn of(text: String) -> Self {
        Self(text.into())
    }

    /// The text, to be filled further.
    #[cfg(feature = "mysql")]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl SqlSafeStr for &Sql {
    fn into_sql_str(self) -> SqlStr {
        // Only templates of this crate and names that are identifiers become a `Sql`.
        AssertSqlSafe(Arc::clone(&self.0)).into_sql_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(table: Option<&str>, schema: Option<&str>) -> Result<String, String> {
        let mut options = StoreOptions::new("memory:");
        options.table = table.map(str::to_owned);
        options.schema = schema.map(str::to_owned);
        Table::of(&options, '"').map(|table| table.quoted("_audit")).map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_quoted_with_their_schema() {
        assert_eq!(quoted(None, None).as_deref(), Ok("\"idempotency_keys_audit\""));
        assert_eq!(quoted(Some("order"), Some("ops")).as_deref(), Ok("\"ops\".\"order_audit\""));
        assert_eq!(quoted(Some("ops.order"), None).as_deref(), Ok("\"ops\".\"order_audit\""));
        assert_eq!(quoted(Some("ops.order"), Some("ops")).as_deref(), Ok("\"ops\".\"order_audit\""));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = "x".repeat(MAX_BYTES + 1);
        for name in ["", "a b", "a\"b", "a;b", "a.b.c", ".a", "a.", "a\0", &long] {
            assert!(quoted(Some(name), None).is_err(), "{name}");
        }
        assert!(quoted(Some("a.b"), Some("c")).is_err_and(|error| error.contains("say it once")));
    }
}
