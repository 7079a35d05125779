//! What the table must look like, and what to say where it does not.

use std::fmt::Write as _;

use crate::store::{LONGEST_LABEL, sql::Table};

/// The version of the table's shape that this build reads and writes.
pub(crate) const VERSION: i32 = 1;

/// A column that must be there.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// Its type and default, as `ALTER TABLE … ADD COLUMN` takes them. `None` where it cannot be added afterwards.
    pub(crate) ddl: Option<&'static str>,
    /// The types that can be read, as the dialect names them; none where the dialect has looked at it by itself.
    pub(crate) types: &'static [&'static str],
}

/// A column that is there.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) type_name: String,
    /// How many characters it can hold; `None` where nothing limits them.
    pub(crate) room: Option<u32>,
    pub(crate) not_null: bool,
    /// Whether an `INSERT` may leave it out.
    pub(crate) has_default: bool,
}

impl Found {
    fn must_be_given(&self) -> bool {
        self.not_null && !self.has_default
    }
}

/// How many characters the columns must hold at least. What has no bound by itself is cut before it is written.
const ROOM: [(&str, u32); 11] = [
    ("key", 255),
    ("status", 16),
    ("job", LONGEST_LABEL),
    ("template", 255),
    ("mode", 16),
    ("on_stale", 8),
    ("owner", 32),
    ("fingerprint", 64),
    ("result", 65_536),
    ("error", 4_096),
    ("worker", LONGEST_LABEL),
];

/// The columns into which `NULL` is never written.
const NEVER_NULL: [&str; 6] = ["key", "status", "fence", "attempt", "takeovers", "created_at"];

/// What the companions must have.
const AUDIT: [&str; 6] = ["key", "actor", "from_status", "to_status", "note", "old_result"];
const SCHEMA: [&str; 2] = ["version", "fence_floor"];

/// The table as it was found.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// The columns; none where there is no table.
    pub(crate) columns: Vec<Found>,
    /// Whether two rows cannot have one key, byte by byte.
    pub(crate) key_is_unique: bool,
    /// What the companion table says; `None` where it is missing or empty.
    pub(crate) version: Option<i32>,
    /// The columns of the audit table; none where there is no such table.
    pub(crate) audit: Vec<Found>,
    /// The columns of the table that tells the version; none where there is no such table.
    pub(crate) schema: Vec<Found>,
}

impl Shape {
    /// Whether the version can be asked for.
    pub(crate) fn tells_version(&self) -> bool {
        SCHEMA.iter().all(|name| self.schema.iter().any(|found| found.name == *name))
    }

    /// Whether all that is needed is there, or what is wrong with what is there.
    pub(crate) fn is_complete(&self, table: &Table, wanted: &[Column]) -> Result<bool, String> {
        if let Some(version) = self.version.filter(|version| *version > VERSION) {
            return Err(format!(
                "the table {} has schema version {version}, made by a newer release; this build knows version \
                 {VERSION}: update `idem-runtime`",
                table.quoted("")
            ));
        }
        check_companion(table, "_audit", &self.audit, &AUDIT)?;
        check_companion(table, "_schema", &self.schema, &SCHEMA)?;
        if self.columns.is_empty() {
            return Ok(false);
        }
        self.check_names(table, wanted)?;
        self.check_types(table, wanted)?;
        self.check_constraints(table, wanted)?;
        if !self.key_is_unique {
            return Err(format!(
                "the table {} has no primary key or unique index on `key` alone that compares byte by byte, so claims \
                 could not exclude each other; add one",
                table.quoted("")
            ));
        }
        Ok(self.version.is_some() && !self.audit.is_empty())
    }

    fn find(&self, name: &str) -> Option<&Found> {
        self.columns.iter().find(|found| found.name == name)
    }

    fn check_names(&self, table: &Table, wanted: &[Column]) -> Result<(), String> {
        let name = table.quoted("");
        let missing: Vec<_> = wanted.iter().filter(|column| self.find(column.name).is_none()).collect();
        if let Some(column) = missing.iter().find(|column| column.ddl.is_none()) {
            return Err(format!(
                "the table {name} is not one of idempotency keys: it has no column `{}`; choose another name for ours",
                column.name
            ));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let mut text = format!("the table {name} lacks columns; run");
        for column in missing {
            let ddl = column.ddl.unwrap_or_default();
            let _ = write!(text, "\nALTER TABLE {name} ADD COLUMN {} {ddl};", column.name);
        }
        Err(text)
    }

    fn check_types(&self, table: &Table, wanted: &[Column]) -> Result<(), String> {
        let name = table.quoted("");
        for column in wanted {
            let Some(found) = self.find(column.name) else { continue };
            if !column.types.is_empty() && !column.types.contains(&found.type_name.as_str()) {
                return Err(format!(
                    "column `{}` of {name} has type `{}`; it must be `{}`",
                    column.name,
                    found.type_name,
                    column.types.join("` or `")
                ));
            }
            let needed = ROOM.iter().find(|(of, _)| *of == column.name).map_or(0, |(_, room)| *room);
            if let Some(room) = found.room.filter(|room| *room < needed) {
                return Err(format!(
                    "column `{}` of {name} has type `{}({room})`; it must hold {needed} characters",
                    column.name, found.type_name
                ));
            }
        }
        Ok(())
    }

    fn check_constraints(&self, table: &Table, wanted: &[Column]) -> Result<(), String> {
        let name = table.quoted("");
        for found in &self.columns {
            let ours = wanted.iter().any(|column| column.name == found.name);
            if ours && found.not_null && !NEVER_NULL.contains(&found.name.as_str()) {
                return Err(format!(
                    "column `{}` of {name} is `NOT NULL`; it must take `NULL`, which says that there is none",
                    found.name
                ));
            }
            if !ours && found.must_be_given() {
                return Err(format!(
                    "column `{}` of {name} is not ours, `NOT NULL` and without a default, so that no claim could be \
                     written; give it a default, or let it be `NULL`",
                    found.name
                ));
            }
        }
        Ok(())
    }
}

/// A table of a companion's name that lacks what the companion has is somebody else's.
fn check_companion(table: &Table, suffix: &str, found: &[Found], needed: &[&str]) -> Result<(), String> {
    let lacking = needed.iter().find(|name| !found.iter().any(|found| found.name == **name));
    match lacking.filter(|_| !found.is_empty()) {
        Some(lacking) => Err(format!(
            "the table {} has no column `{lacking}`: it is not the companion of {}; choose another name for ours",
            table.quoted(suffix),
            table.quoted("")
        )),
        None => Ok(()),
    }
}

/// What to say where the table is missing and is not ours to make.
pub(crate) fn missing(table: &Table, ddl: &str) -> String {
    format!(
        "the table {} is missing or incomplete, and migrations are off; allow `migrate(true)`, or run these statements \
         (`Idem::ddl()` gives them; without a connection: `Idem::builder().url(…).ddl()`; they stand in \
         `idem-runtime/migrations/`)\n{ddl}",
        table.quoted("")
    )
}
