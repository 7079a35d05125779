//! The statements, in Postgres's words.
//!
//! Each is whole in itself: it needs no session state and no transaction around it.

use crate::store::sql::{Column, Sql, Table};

/// A row in which nobody wrote a state is a claim, as one with nothing but its key is.
const STATUS: &str = "COALESCE(status, 'processing')";

/// The present in microseconds: the moment itself, not the beginning of the transaction.
const NOW: &str = "(date_part('epoch', clock_timestamp()) * 1000000)::bigint";

/// A time column as microseconds.
const BORN: &str =
    "CASE WHEN isfinite(created_at) THEN (date_part('epoch', created_at) * 1000000)::bigint ELSE 0 END";
const DONE: &str =
    "CASE WHEN isfinite(completed_at) THEN (date_part('epoch', completed_at) * 1000000)::bigint END";

const FLOOR: &str = "(SELECT COALESCE(max(fence_floor), 0) FROM {schema})";

/// A condition that is evaluated before any row is touched and limits, for this statement alone, every wait for a
/// lock.
const ALONE: &str = "(SELECT set_config('lock_timeout', '5ms', true)) IS NOT NULL";
const TOGETHER: &str = "(SELECT set_config('lock_timeout', '50ms', true)) IS NOT NULL";
/// The same in a caller's transaction, where it lasts until the caller's own limit is put back.
const WAITING: &str = "(SELECT set_config('lock_timeout', {limit}, true)) IS NOT NULL";
const COLLECTING: &str = "(SELECT set_config('lock_timeout', '2s', true)) IS NOT NULL";

/// A condition that holds and is free where the parameter is known to be true, and looks ruinous where it is not.
// A plan made for any parameters, while the table was small, would scan the whole table for as long as the
// connection lives. This keeps the plan cache from ever preferring such a plan: batches are planned for the table as
// it is.
const PLANNED: &str = "({planned}::boolean OR (SELECT count(*) FROM generate_series(1, 1000000000)) > 0)";

/// A condition that holds, costs nothing, and looks dear for each row.
// Planning anew would cost a single row more than it gains. This makes even a table of a few rows look too long to be
// scanned, so that the plan that is kept goes through the primary key, or, for what is due, through its index.
const BY_KEY: &str = "CASE WHEN length(key) >= 0 THEN true
    ELSE (SELECT count(*) > 0 FROM generate_series(1, length(key))) END";

const DDL: &str = include_str!("../../../migrations/postgres/0001_create.sql");

/// What stands between `INSERT INTO {table}` and the rows.
const INTO: &str = "(key, status, job, template, mode, on_stale, owner, attempt, takeovers, lease_until,
    fingerprint, result, error, worker, expires_at, alerted_at, fence, created_at, completed_at)";

/// What a row is read as, behind its key. A row that this statement made has its fence in front, and nothing else.
const RECORD: &str = "{status} AS status, job, template, mode, on_stale, owner,
    COALESCE(fence, 0) AS fence, COALESCE(attempt, 0) AS attempt, COALESCE(takeovers, 0) AS takeovers, lease_until,
    fingerprint, result, error, worker, expires_at, alerted_at, {born} AS created_at, {done} AS completed_at, {now}";
const NO_RECORD: &str = "NULL::text AS status, NULL::text AS job, NULL::text AS template, NULL::text AS mode,
    NULL::text AS on_stale, NULL::text AS owner, NULL::bigint AS fence, NULL::integer AS attempt,
    NULL::integer AS takeovers, NULL::bigint AS lease_until, NULL::text AS fingerprint, NULL::text AS result,
    NULL::text AS error, NULL::text AS worker, NULL::bigint AS expires_at, NULL::bigint AS alerted_at,
    NULL::bigint AS created_at, NULL::bigint AS completed_at, NULL::bigint";

/// The fence of a row that is new, and of one that is replaced, unless they are a phase's.
const NEW_FENCE: &str = "GREATEST({now}, {floor} + 1)";
const NEXT_FENCE: &str =
    "CASE WHEN $25 THEN GREATEST({now}, COALESCE(fence, 0) + 1) ELSE COALESCE(fence, 0) END";

const INSERT: &str = "
    INSERT INTO {table} {into}
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, COALESCE({now} + $10, $11),
        {fingerprint}, $13, $14, $15, COALESCE({now} + $16, $17), COALESCE({now} + $18, $19),
        {made_fence}, clock_timestamp(), CASE $2 WHEN 'completed' THEN clock_timestamp() END
    {under}
    WHERE {alone}
    ON CONFLICT (key) DO NOTHING
    RETURNING key, fence";

/// Claims or reads. The rows that were there are read from the snapshot of the statement's beginning, in which the
/// ones it makes do not show.
const INSERT_ONE: &str = "
    WITH made AS ({insert})
    SELECT key, fence, {no_record} FROM made
    UNION ALL
    SELECT key, NULL, {record} FROM {table} WHERE key = $1 AND {by_key}";

const INSERT_MANY: &str = "
    WITH made AS (
        INSERT INTO {table} {into}
        SELECT new.key, new.status, new.job, new.template, new.mode, new.on_stale, new.owner, new.attempt,
            new.takeovers, COALESCE({now} + new.lease_in, new.lease_at), new.fingerprint, new.result, new.error,
            new.worker, COALESCE({now} + new.expires_in, new.expires_at),
            COALESCE({now} + new.alerted_in, new.alerted_at),
            {made_fence}, clock_timestamp(),
            CASE new.status WHEN 'completed' THEN clock_timestamp() END
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::integer[],
            $9::integer[], $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::text[], $15::text[],
            $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[])
            AS new (key, status, job, template, mode, on_stale, owner, attempt, takeovers, lease_in, lease_at,
                fingerprint, result, error, worker, expires_in, expires_at, alerted_in, alerted_at)
        WHERE {together}
        ON CONFLICT (key) DO NOTHING
        RETURNING key, fence
    )
    SELECT key, fence, {no_record} FROM made
    UNION ALL
    SELECT key, NULL, {record} FROM {table} WHERE key = ANY($1) AND {planned}";

const EXPECTED: &str =
    "key = $1 AND {status} = $2 AND owner IS NOT DISTINCT FROM $3 AND COALESCE(fence, 0) = $4
    AND lease_until IS NOT DISTINCT FROM $5 AND {born} = $6 AND {alone} AND {by_key}";

const REPLACE: &str = "
    UPDATE {table} SET
        status = $7, job = $8, template = $9, mode = $10, on_stale = $11, owner = $12, attempt = $13,
        takeovers = $14, lease_until = COALESCE({now} + $15, $16), fingerprint = {fingerprint}, result = $18, error = $19,
        worker = $20, expires_at = COALESCE({now} + $21, $22), alerted_at = COALESCE({now} + $23, $24),
        fence = {made_fence},
        created_at = CASE WHEN $26 THEN clock_timestamp() ELSE created_at END,
        completed_at = CASE $7 WHEN 'completed' THEN clock_timestamp() END
    {under}
    WHERE {expected}
    RETURNING fence";

const LINE: &str = "
    audited AS (
        INSERT INTO {audit} (key, actor, from_status, to_status, note, old_result)
        SELECT $1, $27, $28, $29, $30, $31 FROM written
    )";

const REPLACE_AUDITED: &str = "WITH written AS ({replace}), {line} SELECT fence FROM written";

const FINISH_ONE: &str = "
    UPDATE {table} SET
        status = $4,
        result = CASE $4 WHEN 'completed' THEN $5 ELSE result END,
        error = COALESCE($6, error),
        lease_until = CASE $4 WHEN 'processing' THEN {now} END,
        expires_at = CASE $4 WHEN 'processing' THEN expires_at ELSE {now} + $7 END,
        fence = fence + CASE $4 WHEN 'processing' THEN 1 ELSE 0 END,
        attempt = GREATEST(attempt - $8, 0),
        completed_at = CASE $4 WHEN 'completed' THEN clock_timestamp() END
    {under}
    WHERE key = $1 AND owner = $2 AND fence = $3
        AND ({status} = 'processing' OR ($4 = 'completed' AND status IN ('needs_review', 'released')))
        AND {alone} AND {by_key}
    RETURNING key, fence";

const FINISH_MANY: &str = "
    UPDATE {table} AS held SET
        status = finish.status,
        result = CASE finish.status WHEN 'completed' THEN finish.result ELSE held.result END,
        error = COALESCE(finish.error, held.error),
        lease_until = CASE finish.status WHEN 'processing' THEN {now} END,
        expires_at = CASE finish.status WHEN 'processing' THEN held.expires_at ELSE {now} + finish.expires_in END,
        fence = held.fence + CASE finish.status WHEN 'processing' THEN 1 ELSE 0 END,
        attempt = GREATEST(held.attempt - finish.withdrawn, 0),
        completed_at = CASE finish.status WHEN 'completed' THEN clock_timestamp() END
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::integer[])
        AS finish (key, owner, fence, status, result, error, expires_in, withdrawn)
    WHERE held.key = finish.key AND held.owner = finish.owner AND held.fence = finish.fence
        AND (COALESCE(held.status, 'processing') = 'processing'
            OR (finish.status = 'completed' AND held.status IN ('needs_review', 'released')))
        AND {together} AND {planned}
    RETURNING held.key, held.fence";

const RENEW: &str = "
    WITH due AS MATERIALIZED (
        SELECT held.ctid AS place, renew.lease
        FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS renew (key, owner, fence, lease)
            JOIN {table} AS held ON held.key = renew.key AND held.owner = renew.owner AND held.fence = renew.fence
        WHERE COALESCE(held.status, 'processing') IN ('processing', 'needs_review') AND {planned}
        ORDER BY held.key
        FOR NO KEY UPDATE OF held SKIP LOCKED
    )
    UPDATE {table} AS held SET lease_until = {now} + due.lease
    FROM due
    WHERE held.ctid = due.place
    RETURNING held.key";

/// Renews the lease of a claim that stands, and tells the birth of its row. What a person released has no lease.
const STANDS: &str = "
    UPDATE {table} SET lease_until = CASE {status} WHEN 'released' THEN lease_until ELSE {now} + {lease} END
    WHERE key = {job} AND owner = {owner} AND fence = {job_fence}
        AND ({status} IN ('processing', 'needs_review') OR ({ends} AND status = 'released'))
        AND {alone} AND {by_key}
    RETURNING {born}::text AS birth";

/// Writes a phase's row under its job's claim. No row where that does not stand; else the fence of what was written, and
/// the row of the phase as it was before, if there was one.
const PHASE: &str = "
    WITH stands AS ({stands}), written AS ({write}){and}
    SELECT written.fence, NULL::text AS key, {no_record} FROM stands LEFT JOIN written ON true
    UNION ALL
    SELECT NULL, key, {record} FROM {table} WHERE key = $1 AND {by_key} AND EXISTS (SELECT FROM stands)";

const READ_ONE: &str = "SELECT key, {record} FROM {table} WHERE key = $1 AND {by_key}";

const READ_MANY: &str = "SELECT key, {record} FROM {table} WHERE key = ANY($1) AND {planned}";

/// By its bytes, whatever the column's collation.
const BETWEEN: &str = "
    SELECT key, {record} FROM {table}
    WHERE key COLLATE \"C\" > $1 AND key COLLATE \"C\" < $2 AND {by_key}
    ORDER BY key COLLATE \"C\" LIMIT $3";

/// What a row of a claim says that is turned over for review without anybody calling.
const WAITS_FOR_REVIEW: &str = "(owner IS NULL OR on_stale NOT IN ('retry', 'probe'))";

// The state by its bare column: only so is the index that holds nothing but claims and reviews of use.
const WATCH: &str = "
    (SELECT key, {record} FROM {table}
    WHERE status = 'processing' AND lease_until <= (SELECT {now}) AND {waits_for_review} AND {planned}
    ORDER BY lease_until LIMIT $1)
    UNION ALL
    (SELECT key, {record} FROM {table}
    WHERE status = 'processing' AND lease_until IS NULL AND {born} <= {now} - $2 AND {waits_for_review} AND {planned}
    LIMIT $1)
    UNION ALL
    (SELECT key, {record} FROM {table}
    WHERE status = 'needs_review' AND alerted_at IS NULL AND $3 AND {planned}
    LIMIT $1)";

const AUDITED: &str = "
    SELECT (date_part('epoch', at) * 1000000)::bigint, actor, from_status, to_status, note, old_result
    FROM {audit} WHERE key = $1 ORDER BY id";

// Of a comparison the planner of a table without statistics would expect next to no rows, and sort all that are due for
// each batch. Of a `CASE` it expects half, and walks along the index until it has enough.
const DUE: &str = "expires_at <= (SELECT {now})
    AND CASE status WHEN 'completed' THEN true WHEN 'failed' THEN true WHEN 'released' THEN true ELSE false END
    AND {collecting} AND {planned} AND {by_key}";

/// The phases of the jobs in `due`, one after the other, behind a row for each job by itself.
// As a join the planner would expect a ninth of the table for each job, and rather scan it.
const PHASES: &str = "
    phase (job, place, fence, key, before) AS (
        SELECT place, NULL::tid, NULL::bigint, key || '/', key || '0' FROM due
        UNION ALL
        SELECT phase.job, next.place, next.fence, next.key, phase.before
        FROM phase, LATERAL (
            SELECT ctid AS place, fence, key::text AS key FROM {table}
            WHERE key COLLATE \"C\" > phase.key AND key COLLATE \"C\" < phase.before AND {by_key}
            ORDER BY key COLLATE \"C\" LIMIT 1
        ) AS next
    )";

/// Lifts the floor over the fences of the rows that are to go, in a statement of its own: a claim that comes while they
/// go has read the floor before, and its fence must be above theirs. Up to the present it covers whatever others collect.
const RAISE_FLOOR_OVER_DUE: &str = "
    WITH RECURSIVE due AS MATERIALIZED (
        SELECT ctid AS place, key::text, fence FROM {table} WHERE {due} ORDER BY expires_at LIMIT $1
    ), {phases}
    UPDATE {schema} SET fence_floor = highest.fence
    FROM (
        SELECT GREATEST({now}, max(fence)) AS fence
        FROM (SELECT fence FROM due UNION ALL SELECT fence FROM phase) AS going
        HAVING count(*) > 0
    ) AS highest
    WHERE fence_floor < highest.fence";

const RAISE_FLOOR_OVER: &str = "
    WITH RECURSIVE due AS (SELECT NULL::tid AS place, $1::text COLLATE \"C\" AS key), {phases}
    UPDATE {schema} SET fence_floor = highest.fence
    FROM (SELECT GREATEST($2, max(fence)) AS fence FROM phase) AS highest
    WHERE fence_floor < highest.fence AND {collecting}";

/// A job goes with its phases, or stays with them: where somebody holds one, or raised its fence over the floor.
const PURGE: &str = "
    WITH RECURSIVE due AS MATERIALIZED (
        SELECT ctid AS place, key::text FROM {table}
        WHERE {due} AND CASE WHEN fence > {floor} THEN false ELSE true END
        ORDER BY expires_at LIMIT $1
        FOR UPDATE SKIP LOCKED
    ), {phases}, free AS MATERIALIZED (
        SELECT ctid AS place FROM {table}
        WHERE ctid = ANY(ARRAY(SELECT place FROM phase)) AND COALESCE(fence, 0) <= {floor}
        FOR UPDATE SKIP LOCKED
    ), stays AS MATERIALIZED (
        SELECT job FROM phase WHERE place IS NOT NULL AND place NOT IN (SELECT place FROM free)
    ), phases_gone AS (
        DELETE FROM {table}
        WHERE ctid = ANY(ARRAY(SELECT place FROM phase WHERE job NOT IN (SELECT job FROM stays)))
    ), gone AS (
        DELETE FROM {table}
        WHERE ctid = ANY(ARRAY(SELECT place FROM due WHERE place NOT IN (SELECT job FROM stays)))
        RETURNING 1
    )
    SELECT count(*) FROM gone";

const FORGET: &str = "
    WITH RECURSIVE gone AS (
        DELETE FROM {table} WHERE {expected} RETURNING ctid AS place, key::text
    ), due AS (
        SELECT place, key FROM gone
    ), {phases}, phases_gone AS (
        DELETE FROM {table} WHERE ctid = ANY(ARRAY(SELECT place FROM phase)) AND {by_key}
    ), audited AS (
        INSERT INTO {audit} (key, actor, from_status, to_status, note, old_result)
        SELECT $1, $7, $8, $9, $10, $11 FROM gone
    )
    SELECT count(*) FROM gone";

#[derive(Debug)]
pub(super) struct Statements {
    pub(super) insert_one: Sql,
    pub(super) insert_waiting: Sql,
    pub(super) insert_many: Sql,
    pub(super) replace: Sql,
    pub(super) replace_waiting: Sql,
    pub(super) replace_audited: Sql,
    pub(super) finish_one: Sql,
    pub(super) finish_own: Sql,
    pub(super) finish_many: Sql,
    pub(super) renew: Sql,
    pub(super) stands: Sql,
    pub(super) phase_insert: Sql,
    pub(super) phase_replace: Sql,
    pub(super) phase_replace_audited: Sql,
    pub(super) phase_finish: Sql,
    pub(super) read_one: Sql,
    pub(super) read_many: Sql,
    pub(super) between: Sql,
    pub(super) raise_floor_over_due: Sql,
    pub(super) raise_floor_over: Sql,
    pub(super) watch: Sql,
    pub(super) audited: Sql,
    pub(super) purge: Sql,
    pub(super) forget: Sql,
    pub(super) ddl: Sql,
    pub(super) version: Sql,
}

impl Statements {
    pub(super) fn of(table: &Table) -> Self {
        let alone = |template: &str, alone: &str, planned: &str| {
            let template = template
                .replace("{line}", LINE)
                .replace("{phases}", PHASES)
                .replace("{due}", DUE)
                .replace("{expected}", EXPECTED)
                .replace("{waits_for_review}", WAITS_FOR_REVIEW)
                .replace("{no_record}", NO_RECORD)
                .replace("{record}", RECORD)
                .replace("{into}", INTO)
                .replace("{floor}", FLOOR)
                .replace("{status}", STATUS)
                .replace("{born}", BORN)
                .replace("{done}", DONE)
                .replace("{now}", NOW)
                .replace("{alone}", alone)
                .replace("{together}", TOGETHER)
                .replace("{collecting}", COLLECTING)
                .replace("{by_key}", BY_KEY)
                .replace("{planned}", &PLANNED.replace("{planned}", planned));
            table.sql(&template)
        };
        let sql = |template: &str, planned: &str| alone(template, ALONE, planned);
        let waiting = |template: &str, limit: &str| alone(template, &WAITING.replace("{limit}", limit), "");
        let insert = INSERT_ONE.replace("{insert}", &by_itself(INSERT, NEW_FENCE, "$12"));
        let replace = by_itself(REPLACE, NEXT_FENCE, "$17");
        let finish = by_itself(FINISH_ONE, "", "");
        let phase =
            |write: &str, fence: &str, and: &str, first: usize| sql(&phase(write, fence, and, first), "");
        let replaced = "GREATEST({job_fence}, COALESCE(fence, 0))";
        Self {
            insert_one: sql(&insert, ""),
            insert_waiting: waiting(&insert, "$20"),
            insert_many: sql(&by_itself(INSERT_MANY, NEW_FENCE, ""), "$20"),
            replace: sql(&replace, ""),
            replace_waiting: waiting(&replace, "$27"),
            replace_audited: sql(&REPLACE_AUDITED.replace("{replace}", &replace), ""),
            finish_one: sql(&finish, ""),
            finish_own: alone(&finish, "true", ""),
            finish_many: sql(FINISH_MANY, "$9"),
            renew: sql(RENEW, "$5"),
            stands: waiting(&of_claim(STANDS, 1), "$6"),
            phase_insert: phase(INSERT, "{job_fence}", "", 20),
            phase_replace: phase(REPLACE, replaced, "", 27),
            phase_replace_audited: phase(REPLACE, replaced, ", {line}", 32),
            phase_finish: phase(FINISH_ONE, "", "", 9),
            read_one: sql(READ_ONE, ""),
            read_many: sql(READ_MANY, "$2"),
            between: sql(BETWEEN, ""),
            raise_floor_over_due: sql(RAISE_FLOOR_OVER_DUE, "$2"),
            raise_floor_over: sql(RAISE_FLOOR_OVER, ""),
            watch: sql(WATCH, "$4"),
            audited: sql(AUDITED, ""),
            purge: sql(PURGE, "$2"),
            forget: sql(FORGET, ""),
            ddl: sql(DDL, ""),
            version: sql("SELECT version FROM {schema} ORDER BY version DESC", ""),
        }
    }
}

/// A write with the fence and the fingerprint that it gives its row.
fn by_itself(write: &str, fence: &str, fingerprint: &str) -> String {
    write.replace("{made_fence}", fence).replace("{fingerprint}", fingerprint).replace("{under}", "")
}

/// A write of a phase: the parameters of the job's claim come behind its own.
fn phase(write: &str, fence: &str, and: &str, first: usize) -> String {
    let write = write.replace("{made_fence}", fence).replace("{fingerprint}", "stands.birth");
    let write = write.replace("{under}", "FROM stands");
    of_claim(&PHASE.replace("{write}", &write).replace("{and}", and).replace("{stands}", STANDS), first)
}

/// Numbers the parameters of a claim.
fn of_claim(template: &str, first: usize) -> String {
    let names = ["{job}", "{owner}", "{job_fence}", "{lease}", "{ends}"];
    let numbered = |template: String, (at, name)| template.replace(name, &format!("${at}"));
    (first..).zip(names).fold(template.to_owned(), numbered)
}

/// The statements that create the table.
pub(super) fn ddl(table: &Table) -> String {
    table.fill(DDL)
}

const TEXT: &[&str] = &["text", "varchar"];
const BIGINT: &[&str] = &["int8"];
const INTEGER: &[&str] = &["int4"];
const TIME: &[&str] = &["timestamptz"];

/// The columns that must be there, with their types as the catalogue names them.
pub(super) const COLUMNS: &[Column] = &[
    Column { name: "key", ddl: None, types: TEXT },
    Column { name: "status", ddl: Some("text NOT NULL DEFAULT 'processing'"), types: TEXT },
    Column { name: "job", ddl: Some("text"), types: TEXT },
    Column { name: "template", ddl: Some("text"), types: TEXT },
    Column { name: "mode", ddl: Some("text"), types: TEXT },
    Column { name: "on_stale", ddl: Some("text"), types: TEXT },
    Column { name: "owner", ddl: Some("text"), types: TEXT },
    Column { name: "fence", ddl: Some("bigint NOT NULL DEFAULT 0"), types: BIGINT },
    Column { name: "attempt", ddl: Some("integer NOT NULL DEFAULT 0"), types: INTEGER },
    Column { name: "takeovers", ddl: Some("integer NOT NULL DEFAULT 0"), types: INTEGER },
    Column { name: "lease_until", ddl: Some("bigint"), types: BIGINT },
    Column { name: "fingerprint", ddl: Some("text"), types: TEXT },
    Column { name: "result", ddl: Some("text"), types: TEXT },
    Column { name: "error", ddl: Some("text"), types: TEXT },
    Column { name: "worker", ddl: Some("text"), types: TEXT },
    Column { name: "expires_at", ddl: Some("bigint"), types: BIGINT },
    Column { name: "alerted_at", ddl: Some("bigint"), types: BIGINT },
    Column { name: "created_at", ddl: Some("timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP"), types: TIME },
    Column { name: "completed_at", ddl: Some("timestamptz"), types: TIME },
];
