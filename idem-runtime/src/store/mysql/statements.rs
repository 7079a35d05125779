//! The statements, in the words that MySQL 8 and MariaDB share.
//!
//! Each is whole in itself: it needs no SQL mode, no time zone and no transaction around it. In an `UPDATE` no column
//! is set from another one that it sets: the modes differ in whether that sees the old value.

use super::server::Server;
use crate::store::{
    Replace,
    sql::{Column, Sql, Table},
};

/// The present in microseconds: the moment itself, not the beginning of the statement.
// Nothing tells the present in UTC at once. How long ago the statement began is the same in every time zone.
const NOW: &str = "({began} + TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)))";

/// The beginning of the statement in microseconds: a constant, so that an index can be searched for it.
const BEGAN: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))";

/// A time column as microseconds. Of a bare column, this is not converted by way of the session's time zone.
const BORN: &str = "COALESCE(CAST(UNIX_TIMESTAMP({held}created_at) * 1000000 AS SIGNED), 0)";
const DONE: &str = "CAST(UNIX_TIMESTAMP({held}completed_at) * 1000000 AS SIGNED)";

/// The state as bytes: the collations that both servers know take no notice of trailing blanks. A row in which nobody
/// wrote one is a claim, as one with nothing but its key is.
const STATUS: &str = "CAST(COALESCE({held}status, 'processing') AS BINARY)";

const FLOOR: &str = "(SELECT COALESCE(MAX(fence_floor), 0) FROM {schema})";

/// What lets a statement of MariaDB fail at once where a row is locked.
const AT_ONCE: &str = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR";

/// The same in a caller's transaction, where a statement waits as long as it is told.
const WAITING: &str = "SET STATEMENT innodb_lock_wait_timeout = {seconds} FOR";

const DDL: &str = include_str!("../../../migrations/mysql/0001_create.sql");

/// What stands between `INSERT INTO {table}` and the rows.
const INTO: &str = "(`key`, status, job, template, mode, on_stale, owner, attempt, takeovers, lease_until,
    fingerprint, result, error, worker, expires_at, alerted_at, fence, created_at, completed_at)";

/// What a row is read as, behind its key and the floor of the fences.
const RECORD: &str =
    "CONVERT({held}`key` USING utf8mb4), {floor}, COALESCE({held}status, 'processing'), {held}job,
    {held}template, {held}mode, {held}on_stale, {held}owner, COALESCE({held}fence, 0), COALESCE({held}attempt, 0),
    COALESCE({held}takeovers, 0), {held}lease_until, {held}fingerprint, {held}result, {held}error, {held}worker,
    {held}expires_at, {held}alerted_at, {born}, {done}, {now}";

/// The fence of a row that is new.
const NEW_FENCE: &str = "GREATEST({now}, ? + 1)";

const INSERT_ONE: &str = "{at_once}
    INSERT INTO {table} {into}
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, COALESCE({now} + ?, ?), ?, ?, ?, ?, COALESCE({now} + ?, ?),
        COALESCE({now} + ?, ?), {made_fence}, CURRENT_TIMESTAMP(6), IF(?, CURRENT_TIMESTAMP(6), NULL))";

/// Waits for the row that is there as for one that it will change. Those who wait for a plain `INSERT` all come to read
/// the row at once, and are in each other's way when they go on.
const OR_WAIT: &str = " ON DUPLICATE KEY UPDATE `key` = `key`";

/// A text of a document.
const TEXT_CELL: &str = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH";

/// Keys, as rows.
const KEYS: &str = "JSON_TABLE(?, '$[*]' COLUMNS (`key` varchar(255) {text} '$'))";

const INSERT_MANY: &str = "{at_once}
    INSERT INTO {table} {into}
    SELECT made.`key`, made.status, made.job, made.template, made.mode, made.on_stale, made.owner, made.attempt,
        made.takeovers, COALESCE({now} + made.lease_in, made.lease_at), made.fingerprint, made.result, made.error,
        made.worker, COALESCE({now} + made.expires_in, made.expires_at),
        COALESCE({now} + made.alerted_in, made.alerted_at), {made_fence}, CURRENT_TIMESTAMP(6),
        IF(made.status = 'completed', CURRENT_TIMESTAMP(6), NULL)
    FROM JSON_TABLE(?, '$[*]' COLUMNS (
        `key` varchar(255) {text} '$.key', status varchar(64) {text} '$.status', job longtext {text} '$.job',
        template longtext {text} '$.template', mode varchar(64) {text} '$.mode',
        on_stale varchar(64) {text} '$.on_stale', owner varchar(255) {text} '$.owner', attempt int PATH '$.attempt',
        takeovers int PATH '$.takeovers', lease_in bigint PATH '$.lease_in', lease_at bigint PATH '$.lease_at',
        fingerprint varchar(255) {text} '$.fingerprint', result longtext {text} '$.result',
        error longtext {text} '$.error', worker longtext {text} '$.worker', expires_in bigint PATH '$.expires_in',
        expires_at bigint PATH '$.expires_at', alerted_in bigint PATH '$.alerted_in',
        alerted_at bigint PATH '$.alerted_at')) AS made";

/// Raises the fence of a new claim over the floor.
const LIFT: &str = "{at_once}
    UPDATE {table} SET fence = GREATEST({now}, ? + 1) WHERE `key` = ? AND owner = ? AND fence = ?";

const EXPECTED: &str = "`key` = ? AND {status} = ? AND owner <=> ? AND COALESCE(fence, 0) = ?
    AND lease_until <=> ? AND {born} = ?";

/// The fence of a row that is replaced: the statement answers with it as an `INSERT` would with its id.
const NEXT_FENCE: &str = "LAST_INSERT_ID(IF(?, GREATEST({now}, COALESCE(fence, 0) + 1), COALESCE(fence, 0)))";

const REPLACE: &str = "{at_once}
    UPDATE {table} SET
        status = ?, job = ?, template = ?, mode = ?, on_stale = ?, owner = ?, attempt = ?, takeovers = ?,
        lease_until = COALESCE({now} + ?, ?), fingerprint = ?, result = ?, error = ?, worker = ?,
        expires_at = COALESCE({now} + ?, ?), alerted_at = COALESCE({now} + ?, ?),
        fence = {made_fence},
        completed_at = IF(?, CURRENT_TIMESTAMP(6), NULL){reborn}
    WHERE {expected}";

/// A fence counts microseconds since 1970. No id of another table comes as far as this one, in 2001.
const EARLIEST: i64 = 1_000_000_000_000_000;

/// The fence that a replacement has left, as its statement answered with it. Where a trigger stands on the table, the
/// answer may be none, or the trigger's own, and the row has to tell.
pub(super) fn fence_told(replace: &Replace, id: u64) -> Option<i64> {
    let before = replace.expected.fence;
    if !replace.raise_fence {
        return Some(before);
    }
    let fence = id.cast_signed();
    (before.max(EARLIEST) < fence).then_some(fence)
}

/// A birth that stays is not mentioned: read and written again, it would pass through the session's time zone.
const REBORN: &str = ", created_at = CURRENT_TIMESTAMP(6)";

const FINISH_ONE: &str = "{at_once}
    UPDATE {table} SET
        status = ?,
        result = IF(?, ?, result),
        error = COALESCE(?, error),
        lease_until = IF(?, {now}, NULL),
        expires_at = IF(?, expires_at, {now} + ?),
        fence = fence + ?,
        attempt = GREATEST(attempt - ?, 0),
        completed_at = IF(?, CURRENT_TIMESTAMP(6), NULL)
    WHERE `key` = ? AND owner = ? AND fence = ?
        AND ({status} = 'processing' OR (? AND {status} IN ('needs_review', 'released')))";

// The order of the tables is said, and with it that of the locks.
const FINISH_MANY: &str = "{at_once}
    UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
        `key` varchar(255) {text} '$.key', owner varchar(255) {text} '$.owner', fence bigint PATH '$.fence',
        status varchar(64) {text} '$.status', result longtext {text} '$.result', error longtext {text} '$.error',
        expires_in bigint PATH '$.expires_in', withdrawn int PATH '$.withdrawn')) AS finish
    STRAIGHT_JOIN {held_table}
        ON held.`key` = finish.`key` AND held.owner = finish.owner AND held.fence = finish.fence
    SET
        held.status = finish.status,
        held.result = IF(finish.status = 'completed', finish.result, held.result),
        held.error = COALESCE(finish.error, held.error),
        held.lease_until = IF(finish.status = 'processing', {now}, NULL),
        held.expires_at = IF(finish.status = 'processing', held.expires_at, {now} + finish.expires_in),
        held.fence = held.fence + IF(finish.status = 'processing', 1, 0),
        held.attempt = GREATEST(held.attempt - finish.withdrawn, 0),
        held.completed_at = IF(finish.status = 'completed', CURRENT_TIMESTAMP(6), NULL)
    WHERE {status} = 'processing'
        OR (finish.status = 'completed' AND {status} IN ('needs_review', 'released'))";

/// The table in a join. Without being told so, a server reads a small one from end to end.
const HELD_TABLE: &str = "{table} AS held FORCE INDEX (PRIMARY)";

const LEASES: &str = "JSON_TABLE(?, '$[*]' COLUMNS (
        `key` varchar(255) {text} '$.key', owner varchar(255) {text} '$.owner', fence bigint PATH '$.fence',
        lease bigint PATH '$.lease')) AS due
    STRAIGHT_JOIN {held_table} ON held.`key` = due.`key` AND held.owner = due.owner AND held.fence = due.fence";

/// The claims among those to renew that nobody holds locked.
const RENEWABLE: &str = "
    SELECT CONVERT(held.`key` USING utf8mb4) FROM {leases}
    WHERE {status} IN ('processing', 'needs_review')
    FOR UPDATE SKIP LOCKED";

const RENEW: &str = "{at_once}
    UPDATE {leases}
    SET held.lease_until = {now} + due.lease
    WHERE {status} IN ('processing', 'needs_review')";

/// Renews the lease of a claim that stands. What a person released has no lease.
const STANDS: &str = "{at_once}
    UPDATE {table} SET lease_until = IF({status} = 'released', lease_until, {now} + ?)
    WHERE `key` = ? AND owner = ? AND fence = ?
        AND ({status} IN ('processing', 'needs_review') OR (? AND {status} = 'released'))";

const BIRTH: &str = "SELECT CAST({born} AS CHAR CHARACTER SET utf8mb4) FROM {table} WHERE `key` = ?";

const READ_ONE: &str = "SELECT {record} FROM {table} WHERE `key` = ?";

/// What was committed last, whatever the transaction has read before.
const READ_LATEST: &str = "SELECT {record} FROM {table} WHERE `key` = ? FOR UPDATE";

const READ_MANY: &str = "
    SELECT {record} FROM {keys} AS wanted STRAIGHT_JOIN {held_table} ON held.`key` = wanted.`key`";

const BETWEEN: &str = "
    SELECT {record} FROM {table} FORCE INDEX (PRIMARY) WHERE `key` > ? AND `key` < ? ORDER BY `key` LIMIT ?";

/// Fails where somebody holds one of the rows.
const PROBE: &str = "
    SELECT held.fence FROM {keys} AS wanted STRAIGHT_JOIN {held_table} ON held.`key` = wanted.`key`
    FOR UPDATE NOWAIT";

/// What a row of a claim says that is turned over for review without anybody calling.
const WAITS_FOR_REVIEW: &str = "(owner IS NULL OR CAST(on_stale AS BINARY) NOT IN ('retry', 'probe'))";

/// A key that can be read as text is the only one that can be written about.
const HAS_A_KEY: &str = "CAST(CONVERT(`key` USING utf8mb4) AS BINARY) = `key`";

/// The state also by its bare column, for the index.
const WATCH: &str = "
    (SELECT {record} FROM {table}
    WHERE status = 'processing' AND {status} = 'processing' AND lease_until <= {began} AND {waits_for_review} AND {has_a_key}
    ORDER BY lease_until LIMIT ?)
    UNION ALL
    (SELECT {record} FROM {table}
    WHERE status = 'processing' AND {status} = 'processing' AND lease_until IS NULL AND {born} <= {began} - ?
        AND {waits_for_review} AND {has_a_key}
    LIMIT ?)
    UNION ALL
    (SELECT {record} FROM {table}
    WHERE status = 'needs_review' AND {status} = 'needs_review' AND alerted_at IS NULL AND ? AND {has_a_key}
    LIMIT ?)";

const AUDITED: &str = "
    SELECT CAST(UNIX_TIMESTAMP(at) * 1000000 AS SIGNED), actor, from_status, to_status, note, old_result
    FROM {audit} WHERE `key` = ? ORDER BY id";

const ENDED: &str = "{status} IN ('completed', 'failed', 'released')";

const EXPIRED: &str = "
    SELECT CONVERT(`key` USING utf8mb4) FROM {table}
    WHERE expires_at <= {began} AND {ended}
    ORDER BY expires_at LIMIT ?";

/// The expired rows that nobody holds locked. By their keys: a search by expiry would lock what lies between them.
const PURGEABLE: &str = "
    SELECT CONVERT(held.`key` USING utf8mb4), COALESCE(held.fence, 0)
    FROM {keys} AS expired STRAIGHT_JOIN {held_table} ON held.`key` = expired.`key`
    WHERE held.expires_at <= {began} AND {ended}
    LIMIT ?
    FOR UPDATE SKIP LOCKED";

/// The phases of jobs, each with its job and its fence.
const PHASES: &str = "
    SELECT CONVERT(job.`key` USING utf8mb4), CONVERT(held.`key` USING utf8mb4), COALESCE(held.fence, 0)
    FROM {keys} AS job STRAIGHT_JOIN {held_table}
        ON held.`key` > CONCAT(job.`key`, '/') AND held.`key` < CONCAT(job.`key`, '0')";

/// The rows that nobody else holds locked.
const FREE: &str = "
    SELECT CONVERT(held.`key` USING utf8mb4)
    FROM {keys} AS wanted STRAIGHT_JOIN {held_table} ON held.`key` = wanted.`key`
    FOR UPDATE SKIP LOCKED";

const DELETE: &str = "{at_once}
    DELETE held FROM {keys} AS gone STRAIGHT_JOIN {held_table} ON held.`key` = gone.`key`";

/// Lifts the floor over the fences of rows that go, so that no later row of these keys has a lower one.
const RAISE_FLOOR: &str = "UPDATE {schema} SET fence_floor = GREATEST(fence_floor, ?) WHERE fence_floor < ?";

const FORGET: &str = "{at_once} DELETE FROM {table} WHERE {expected}";

const AUDIT: &str = "
    INSERT INTO {audit} (`key`, actor, from_status, to_status, note, old_result) VALUES (?, ?, ?, ?, ?, ?)";

#[derive(Debug)]
pub(super) struct Statements {
    pub(super) insert_one: Sql,
    pub(super) insert_waiting: Waiting,
    pub(super) insert_many: Sql,
    pub(super) lift: Sql,
    pub(super) replace: Sql,
    pub(super) replace_reborn: Sql,
    pub(super) replace_waiting: Waiting,
    pub(super) replace_reborn_waiting: Waiting,
    pub(super) finish_one: Sql,
    pub(super) finish_many: Sql,
    pub(super) renewable: Sql,
    pub(super) renew: Sql,
    pub(super) stands: Sql,
    pub(super) birth: Sql,
    pub(super) phase_insert: Sql,
    pub(super) phase_replace: Sql,
    pub(super) phase_replace_reborn: Sql,
    pub(super) stands_waiting: Waiting,
    pub(super) read_one: Sql,
    pub(super) read_latest: Sql,
    pub(super) read_many: Sql,
    pub(super) between: Sql,
    pub(super) probe: Sql,
    pub(super) watch: Sql,
    pub(super) audited: Sql,
    pub(super) expired: Sql,
    pub(super) purgeable: Sql,
    pub(super) phases: Sql,
    pub(super) free: Sql,
    pub(super) delete: Sql,
    pub(super) raise_floor: Sql,
    pub(super) forget: Sql,
    pub(super) audit: Sql,
    pub(super) ddl: Sql,
    pub(super) version: Sql,
}

impl Statements {
    pub(super) fn of(table: &Table, server: Server) -> Self {
        let (at_once, waiting) = match server {
            Server::MariaDb => (AT_ONCE, WAITING),
            Server::MySql => ("", ""),
        };
        let fill_for = |template: &str, held: &str, at_once: &str| {
            let template = template
                .replace("{record}", RECORD)
                .replace("{expected}", EXPECTED)
                .replace("{waits_for_review}", WAITS_FOR_REVIEW)
                .replace("{has_a_key}", HAS_A_KEY)
                .replace("{leases}", LEASES)
                .replace("{held_table}", HELD_TABLE)
                .replace("{keys}", KEYS)
                .replace("{ended}", ENDED)
                .replace("{into}", INTO)
                .replace("{at_once}", at_once)
                .replace("{text}", TEXT_CELL)
                .replace("{floor}", FLOOR)
                .replace("{status}", STATUS)
                .replace("{born}", BORN)
                .replace("{done}", DONE)
                .replace("{now}", NOW)
                .replace("{began}", BEGAN)
                .replace("{held}", held);
            table.fill(template.trim_start())
        };
        let fill = |template: &str, held: &str| Sql::of(fill_for(template, held, at_once));
        let waiting = |template: &str| Waiting(fill_for(template, "", waiting));
        let alone = |template: &str| fill(template, "");
        let joined = |template: &str| fill(template, "held.");
        let new = |template: &str| template.replace("{made_fence}", NEW_FENCE);
        let next = |reborn: &str| REPLACE.replace("{made_fence}", NEXT_FENCE).replace("{reborn}", reborn);
        let phase = |reborn: &str| {
            REPLACE.replace("{made_fence}", "GREATEST(?, COALESCE(fence, 0))").replace("{reborn}", reborn)
        };
        Self {
            insert_one: alone(&new(INSERT_ONE)),
            insert_waiting: waiting(&[&new(INSERT_ONE), OR_WAIT].concat()),
            insert_many: alone(&new(INSERT_MANY)),
            lift: alone(LIFT),
            replace: alone(&next("")),
            replace_reborn: alone(&next(REBORN)),
            replace_waiting: waiting(&next("")),
            replace_reborn_waiting: waiting(&next(REBORN)),
            finish_one: alone(FINISH_ONE),
            finish_many: joined(FINISH_MANY),
            renewable: joined(RENEWABLE),
            renew: joined(RENEW),
            stands: alone(STANDS),
            birth: alone(BIRTH),
            phase_insert: alone(&INSERT_ONE.replace("{made_fence}", "?")),
            phase_replace: alone(&phase("")),
            phase_replace_reborn: alone(&phase(REBORN)),
            stands_waiting: waiting(STANDS),
            read_one: alone(READ_ONE),
            read_latest: alone(READ_LATEST),
            read_many: joined(READ_MANY),
            between: alone(BETWEEN),
            probe: joined(PROBE),
            watch: alone(WATCH),
            audited: alone(AUDITED),
            expired: alone(EXPIRED),
            purgeable: joined(PURGEABLE),
            phases: joined(PHASES),
            free: joined(FREE),
            delete: joined(DELETE),
            raise_floor: alone(RAISE_FLOOR),
            forget: alone(FORGET),
            audit: alone(AUDIT),
            ddl: alone(DDL),
            version: alone("SELECT version FROM {schema} ORDER BY version DESC"),
        }
    }
}

impl Statements {
    pub(super) fn replacing(&self, replace: &Replace) -> &Sql {
        if replace.renew_birth { &self.replace_reborn } else { &self.replace }
    }

    pub(super) fn replacing_phase(&self, replace: &Replace) -> &Sql {
        if replace.renew_birth { &self.phase_replace_reborn } else { &self.phase_replace }
    }

    pub(super) fn replacing_waiting(&self, replace: &Replace) -> &Waiting {
        if replace.renew_birth { &self.replace_reborn_waiting } else { &self.replace_waiting }
    }
}

/// A statement that says how long it waits for a lock. That cannot be a parameter.
#[derive(Debug)]
pub(super) struct Waiting(String);

impl Waiting {
    pub(super) fn lasting(&self, seconds: u64) -> String {
        self.0.replace("{seconds}", &seconds.to_string())
    }
}

/// The statements that create the table.
pub(super) fn ddl(table: &Table) -> String {
    table.fill(DDL)
}

/// Looked at by [`setup`](super::setup), which counts its bytes.
const KEY: &[&str] = &[];
const TEXT: &[&str] = &["text", "varchar", "mediumtext", "longtext"];
const BIGINT: &[&str] = &["bigint"];
const INTEGER: &[&str] = &["int", "bigint"];
const TIME: &[&str] = &["timestamp"];

macro_rules! text_column {
    ($type:literal) => {
        Some(concat!($type, " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL"))
    };
}

/// The columns that must be there, with their types as [`setup`](super::setup) names them.
pub(super) const COLUMNS: &[Column] = &[
    Column { name: "key", ddl: None, types: KEY },
    Column {
        name: "status",
        ddl: Some("varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT 'processing'"),
        types: TEXT,
    },
    Column { name: "job", ddl: text_column!("mediumtext"), types: TEXT },
    Column { name: "template", ddl: text_column!("mediumtext"), types: TEXT },
    Column { name: "mode", ddl: text_column!("varchar(64)"), types: TEXT },
    Column { name: "on_stale", ddl: text_column!("varchar(64)"), types: TEXT },
    Column { name: "owner", ddl: text_column!("varchar(255)"), types: TEXT },
    Column { name: "fence", ddl: Some("bigint NOT NULL DEFAULT 0"), types: BIGINT },
    Column { name: "attempt", ddl: Some("int NOT NULL DEFAULT 0"), types: INTEGER },
    Column { name: "takeovers", ddl: Some("int NOT NULL DEFAULT 0"), types: INTEGER },
    Column { name: "lease_until", ddl: Some("bigint NULL"), types: BIGINT },
    Column { name: "fingerprint", ddl: text_column!("varchar(255)"), types: TEXT },
    Column { name: "result", ddl: text_column!("longtext"), types: TEXT },
    Column { name: "error", ddl: text_column!("mediumtext"), types: TEXT },
    Column { name: "worker", ddl: text_column!("mediumtext"), types: TEXT },
    Column { name: "expires_at", ddl: Some("bigint NULL"), types: BIGINT },
    Column { name: "alerted_at", ddl: Some("bigint NULL"), types: BIGINT },
    Column {
        name: "created_at",
        ddl: Some("timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)"),
        types: TIME,
    },
    Column { name: "completed_at", ddl: Some("timestamp(6) NULL DEFAULT NULL"), types: TIME },
];
