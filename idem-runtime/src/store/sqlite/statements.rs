//! The statements, in SQLite's words.

use crate::store::sql::{Column, Sql, Table};

/// A row in which nobody wrote a state is a claim, as one with nothing but its key is.
const STATUS: &str = "COALESCE(status, 'processing')";

/// The present in microseconds. SQLite keeps milliseconds, and one statement sees one present, taken after it has
/// its lock.
const NOW: &str = "CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000";

/// A time column as microseconds, whoever wrote it: with `T`, with fractions, with an offset.
const BORN: &str = "COALESCE(CAST(ROUND(unixepoch(created_at, 'subsec') * 1000) AS INTEGER) * 1000, 0)";

const FLOOR: &str = "(SELECT COALESCE(MAX(fence_floor), 0) FROM {schema})";

const DDL: &str = include_str!("../../../migrations/sqlite/0001_create.sql");

/// What stands between `INSERT INTO {table}` and the rows.
const INTO: &str = "(key, status, job, template, mode, on_stale, owner, attempt, takeovers, lease_until,
    fingerprint, result, error, worker, expires_at, alerted_at, fence, created_at, completed_at)";

/// The fence of a row that is new, and of one that is replaced, unless they are a phase's.
const NEW_FENCE: &str = "MAX({now}, {floor} + 1)";
const NEXT_FENCE: &str = "CASE WHEN ?25 THEN MAX({now}, COALESCE(fence, 0) + 1) ELSE COALESCE(fence, 0) END";

const INSERT_ONE: &str = "
    INSERT INTO {table} {into}
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, COALESCE({now} + ?10, ?11),
        ?12, ?13, ?14, ?15, COALESCE({now} + ?16, ?17), COALESCE({now} + ?18, ?19),
        {made_fence}, CURRENT_TIMESTAMP, CASE ?2 WHEN 'completed' THEN CURRENT_TIMESTAMP END)
    ON CONFLICT (key) DO NOTHING
    RETURNING key, fence";

/// The rows of a batch, one JSON object each.
// Materialized, because every mention of `json_each.value` writes the object out and reads it in again.
const ITEMS: &str = "item AS MATERIALIZED (SELECT value FROM json_each(?1))";

const INSERT_MANY: &str = "
    WITH {items}
    INSERT INTO {table} {into}
    SELECT value ->> 'key', value ->> 'status', value ->> 'job', value ->> 'template', value ->> 'mode',
        value ->> 'on_stale', value ->> 'owner', value ->> 'attempt', value ->> 'takeovers',
        COALESCE({now} + (value ->> 'lease_in'), value ->> 'lease_at'),
        value ->> 'fingerprint', value ->> 'result', value ->> 'error', value ->> 'worker',
        COALESCE({now} + (value ->> 'expires_in'), value ->> 'expires_at'),
        COALESCE({now} + (value ->> 'alerted_in'), value ->> 'alerted_at'),
        {made_fence}, CURRENT_TIMESTAMP,
        CASE value ->> 'status' WHEN 'completed' THEN CURRENT_TIMESTAMP END
    FROM item WHERE true
    ON CONFLICT (key) DO NOTHING
    RETURNING key, fence";

const EXPECTED: &str =
    "key = ?1 AND {status} = ?2 AND owner IS ?3 AND COALESCE(fence, 0) = ?4 AND lease_until IS ?5
    AND {born} = ?6";

const REPLACE: &str = "
    UPDATE {table} SET
        status = ?7, job = ?8, template = ?9, mode = ?10, on_stale = ?11, owner = ?12, attempt = ?13,
        takeovers = ?14, lease_until = COALESCE({now} + ?15, ?16), fingerprint = ?17, result = ?18, error = ?19,
        worker = ?20, expires_at = COALESCE({now} + ?21, ?22), alerted_at = COALESCE({now} + ?23, ?24),
        fence = {made_fence},
        created_at = CASE WHEN ?26 THEN CURRENT_TIMESTAMP ELSE created_at END,
        completed_at = CASE ?7 WHEN 'completed' THEN CURRENT_TIMESTAMP END
    WHERE {expected}
    RETURNING fence";

const FINISH_MANY: &str = "
    WITH {items}, finish AS MATERIALIZED (
        SELECT value ->> 'key' AS key, value ->> 'owner' AS owner, value ->> 'fence' AS fence,
            value ->> 'status' AS status, value ->> 'result' AS result, value ->> 'error' AS error,
            value ->> 'expires_in' AS expires_in, value ->> 'withdrawn' AS withdrawn
        FROM item
    )
    UPDATE {table} AS held SET
        status = finish.status,
        result = CASE finish.status WHEN 'completed' THEN finish.result ELSE held.result END,
        error = COALESCE(finish.error, held.error),
        lease_until = CASE finish.status WHEN 'processing' THEN {now} END,
        expires_at = CASE finish.status WHEN 'processing' THEN held.expires_at ELSE {now} + finish.expires_in END,
        fence = held.fence + (finish.status = 'processing'),
        attempt = MAX(held.attempt - finish.withdrawn, 0),
        completed_at = CASE finish.status WHEN 'completed' THEN CURRENT_TIMESTAMP END
    FROM finish
    WHERE held.key = finish.key AND held.owner = finish.owner AND held.fence = finish.fence
        AND (COALESCE(held.status, 'processing') = 'processing'
            OR (finish.status = 'completed' AND held.status IN ('needs_review', 'released')))
    RETURNING key, fence";

const FINISH_ONE: &str = "
    UPDATE {table} SET
        status = ?4,
        result = CASE ?4 WHEN 'completed' THEN ?5 ELSE result END,
        error = COALESCE(?6, error),
        lease_until = CASE ?4 WHEN 'processing' THEN {now} END,
        expires_at = CASE ?4 WHEN 'processing' THEN expires_at ELSE {now} + ?7 END,
        fence = fence + (?4 = 'processing'),
        attempt = MAX(attempt - ?8, 0),
        completed_at = CASE ?4 WHEN 'completed' THEN CURRENT_TIMESTAMP END
    WHERE key = ?1 AND owner = ?2 AND fence = ?3
        AND ({status} = 'processing' OR (?4 = 'completed' AND status IN ('needs_review', 'released')))
    RETURNING key, fence";

const RENEW: &str = "
    WITH {items}, renew AS MATERIALIZED (
        SELECT value ->> 'key' AS key, value ->> 'owner' AS owner, value ->> 'fence' AS fence,
            value ->> 'lease' AS lease
        FROM item
    )
    UPDATE {table} AS held SET lease_until = {now} + renew.lease
    FROM renew
    WHERE held.key = renew.key AND held.owner = renew.owner AND held.fence = renew.fence
        AND COALESCE(held.status, 'processing') IN ('processing', 'needs_review')
    RETURNING key";

/// Renews the lease of a claim that stands, and tells the birth of its row. What a person released has no lease.
const STANDS: &str = "
    UPDATE {table} SET lease_until = CASE {status} WHEN 'released' THEN lease_until ELSE {now} + ?4 END
    WHERE key = ?1 AND owner = ?2 AND fence = ?3
        AND ({status} IN ('processing', 'needs_review') OR (?5 AND status = 'released'))
    RETURNING CAST({born} AS TEXT)";

const RECORD: &str =
    "key, {status} AS status, job, template, mode, on_stale, owner, COALESCE(fence, 0) AS fence,
    COALESCE(attempt, 0) AS attempt, COALESCE(takeovers, 0) AS takeovers, lease_until, fingerprint, result, error,
    worker, expires_at, alerted_at, {born} AS created_at,
    CAST(ROUND(unixepoch(completed_at, 'subsec') * 1000) AS INTEGER) * 1000 AS completed_at, {now}";

const READ_ONE: &str = "SELECT {record} FROM {table} WHERE key = ?1";

const READ_MANY: &str = "SELECT {record} FROM {table} WHERE key IN (SELECT value FROM json_each(?1))";

const BETWEEN: &str = "SELECT {record} FROM {table} WHERE key > ?1 AND key < ?2 ORDER BY key LIMIT ?3";

/// What a row of a claim says that is turned over for review without anybody calling.
const WAITS_FOR_REVIEW: &str = "(owner IS NULL OR on_stale NOT IN ('retry', 'probe'))";

/// Lets the index that holds nothing but claims and reviews be used: by its own words.
const WATCHED: &str = "status IN ('processing', 'needs_review')";

const WATCH: &str = "
    SELECT * FROM (SELECT {record} FROM {table}
        WHERE {watched} AND status = 'processing' AND lease_until <= {now} AND {waits_for_review}
        ORDER BY lease_until LIMIT ?1)
    UNION ALL
    SELECT * FROM (SELECT {record} FROM {table}
        WHERE {watched} AND status = 'processing' AND lease_until IS NULL AND {born} <= {now} - ?2
            AND {waits_for_review}
        LIMIT ?1)
    UNION ALL
    SELECT * FROM (SELECT {record} FROM {table}
        WHERE {watched} AND status = 'needs_review' AND alerted_at IS NULL AND ?3
        LIMIT ?1)";

const AUDITED: &str = "
    SELECT CAST(ROUND(unixepoch(at, 'subsec') * 1000) AS INTEGER) * 1000, actor, from_status, to_status, note,
        old_result
    FROM {audit} WHERE key = ?1 ORDER BY id";

const EXPIRED: &str = "expires_at <= {now} AND status IN ('completed', 'failed', 'released')";

const RAISE_FLOOR: &str = "UPDATE {schema} SET fence_floor = MAX(fence_floor, ?1)";

/// What is deleted tells whether it had expired by itself, and its fence.
// `CROSS` has each job's phases searched for, one job after the other.
const PURGE: &str = "
    DELETE FROM {table} WHERE key IN (
        WITH job AS MATERIALIZED (SELECT key FROM {table} WHERE {expired} ORDER BY expires_at LIMIT ?1)
        SELECT key FROM job
        UNION ALL
        SELECT phase.key FROM job CROSS JOIN {table} AS phase
            ON phase.key > job.key || '/' AND phase.key < job.key || '0'
    )
    RETURNING ({expired}) IS TRUE, COALESCE(fence, 0)";

const FORGET: &str = "DELETE FROM {table} WHERE {expected} RETURNING true, COALESCE(fence, 0)";

const FORGET_PHASES: &str = "
    DELETE FROM {table} WHERE key > ?1 || '/' AND key < ?1 || '0' RETURNING false, COALESCE(fence, 0)";

const AUDIT: &str = "
    INSERT INTO {audit} (key, actor, from_status, to_status, note, old_result) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

#[derive(Debug)]
pub(super) struct Statements {
    pub(super) insert_one: Sql,
    pub(super) insert_many: Sql,
    pub(super) replace: Sql,
    pub(super) finish_one: Sql,
    pub(super) finish_many: Sql,
    pub(super) renew: Sql,
    pub(super) stands: Sql,
    pub(super) phase_insert: Sql,
    pub(super) phase_replace: Sql,
    pub(super) read_one: Sql,
    pub(super) read_many: Sql,
    pub(super) between: Sql,
    pub(super) watch: Sql,
    pub(super) audited: Sql,
    pub(super) purge: Sql,
    pub(super) raise_floor: Sql,
    pub(super) forget: Sql,
    pub(super) forget_phases: Sql,
    pub(super) audit: Sql,
    pub(super) ddl: Sql,
    pub(super) version: Sql,
}

impl Statements {
    pub(super) fn of(table: &Table) -> Self {
        let sql = |template: &str| {
            let template = template
                .replace("{record}", RECORD)
                .replace("{expected}", EXPECTED)
                .replace("{waits_for_review}", WAITS_FOR_REVIEW)
                .replace("{watched}", WATCHED)
                .replace("{expired}", EXPIRED)
                .replace("{items}", ITEMS)
                .replace("{into}", INTO)
                .replace("{floor}", FLOOR)
                .replace("{status}", STATUS)
                .replace("{born}", BORN)
                .replace("{now}", NOW);
            table.sql(&template)
        };
        let fenced = |template: &str, fence: &str| sql(&template.replace("{made_fence}", fence));
        Self {
            insert_one: fenced(INSERT_ONE, NEW_FENCE),
            insert_many: fenced(INSERT_MANY, NEW_FENCE),
            replace: fenced(REPLACE, NEXT_FENCE),
            finish_one: sql(FINISH_ONE),
            finish_many: sql(FINISH_MANY),
            renew: sql(RENEW),
            stands: sql(STANDS),
            phase_insert: fenced(INSERT_ONE, "?20"),
            phase_replace: fenced(REPLACE, "MAX(?27, COALESCE(fence, 0))"),
            read_one: sql(READ_ONE),
            read_many: sql(READ_MANY),
            between: sql(BETWEEN),
            watch: sql(WATCH),
            audited: sql(AUDITED),
            purge: sql(PURGE),
            raise_floor: sql(RAISE_FLOOR),
            forget: sql(FORGET),
            forget_phases: sql(FORGET_PHASES),
            audit: sql(AUDIT),
            ddl: sql(DDL),
            version: sql("SELECT version FROM {schema} ORDER BY version DESC"),
        }
    }
}

/// The statements that create the table.
pub(super) fn ddl(table: &Table) -> String {
    table.fill(DDL)
}

/// The columns that must be there, with the affinities that can hold them.
pub(super) const COLUMNS: &[Column] = &[
    Column { name: "key", ddl: None, types: TEXT },
    Column { name: "status", ddl: Some("TEXT NOT NULL DEFAULT 'processing'"), types: TEXT },
    Column { name: "job", ddl: Some("TEXT"), types: TEXT },
    Column { name: "template", ddl: Some("TEXT"), types: TEXT },
    Column { name: "mode", ddl: Some("TEXT"), types: TEXT },
    Column { name: "on_stale", ddl: Some("TEXT"), types: TEXT },
    Column { name: "owner", ddl: Some("TEXT"), types: TEXT },
    Column { name: "fence", ddl: Some("INTEGER NOT NULL DEFAULT 0"), types: INTEGER },
    Column { name: "attempt", ddl: Some("INTEGER NOT NULL DEFAULT 0"), types: INTEGER },
    Column { name: "takeovers", ddl: Some("INTEGER NOT NULL DEFAULT 0"), types: INTEGER },
    Column { name: "lease_until", ddl: Some("INTEGER"), types: INTEGER },
    Column { name: "fingerprint", ddl: Some("TEXT"), types: TEXT },
    Column { name: "result", ddl: Some("TEXT"), types: TEXT },
    Column { name: "error", ddl: Some("TEXT"), types: TEXT },
    Column { name: "worker", ddl: Some("TEXT"), types: TEXT },
    Column { name: "expires_at", ddl: Some("INTEGER"), types: INTEGER },
    Column { name: "alerted_at", ddl: Some("INTEGER"), types: INTEGER },
    // SQLite adds no column with a default that is not constant.
    Column { name: "created_at", ddl: None, types: TIME },
    Column { name: "completed_at", ddl: Some("TEXT"), types: TIME },
];

const TEXT: &[&str] = &["TEXT"];
const INTEGER: &[&str] = &["INTEGER"];
const TIME: &[&str] = &["TEXT", "NUMERIC"];

/// A declared type's affinity, by SQLite's rules.
pub(super) fn affinity(declared: &str) -> &'static str {
    let declared = declared.to_ascii_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
    match () {
        () if has(&["INT"]) => "INTEGER",
        () if has(&["CHAR", "CLOB", "TEXT"]) => "TEXT",
        () if declared.is_empty() || has(&["BLOB"]) => "BLOB",
        () if has(&["REAL", "FLOA", "DOUB"]) => "REAL",
        () => "NUMERIC",
    }
}
