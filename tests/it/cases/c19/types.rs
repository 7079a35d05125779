//! Columns as somebody else has made them: what will do, and what is named at the start.

use idem_runtime::{ErrorKind, Idem};
use idem_tests::Backend;

use crate::cases::{
    call::{executed, replayed},
    life::{live, mail, plain, short_lived},
    site::Site,
};

/// Statements that make the table by hand, with types of one's own.
fn by_hand(site: &Site) -> &'static str {
    match site.backend() {
        Backend::Memory => panic!("memory has no columns"),
        Backend::Mysql => {
            "CREATE TABLE idempotency_keys (
                `key` varbinary(300) PRIMARY KEY, status varchar(16) DEFAULT 'processing', job varchar(255),
                template varchar(255), mode varchar(16), on_stale varchar(8), owner varchar(32), fence bigint,
                attempt bigint, takeovers int, lease_until bigint, fingerprint varchar(64), result mediumtext,
                error varchar(4096), worker longtext, expires_at bigint, alerted_at bigint,
                created_at timestamp NULL DEFAULT CURRENT_TIMESTAMP, completed_at timestamp(3) NULL DEFAULT NULL
             ) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
        }
        Backend::Sqlite => {
            "CREATE TABLE idempotency_keys (
                key VARCHAR(300) PRIMARY KEY, status VARCHAR(20) NOT NULL DEFAULT 'processing', job VARCHAR(10),
                template CLOB, mode NCHAR(20), on_stale NVARCHAR(20), owner CHARACTER(40), fence BIGINT,
                attempt TINYINT, takeovers INT, lease_until UNSIGNED BIG INT, fingerprint VARCHAR(64), result TEXT,
                error CLOB, worker TEXT, expires_at INT8, alerted_at BIGINT, created_at DATETIME DEFAULT
                CURRENT_TIMESTAMP, completed_at TIMESTAMP)"
        }
        Backend::Postgres => {
            "CREATE TABLE idempotency_keys (
                key text COLLATE \"C\" UNIQUE, status varchar(16) DEFAULT 'processing', job varchar(255),
                template varchar(255), mode varchar(16), on_stale varchar(8), owner varchar(32), fence bigint,
                attempt integer, takeovers integer, lease_until bigint, fingerprint varchar(64),
                result varchar(65536), error varchar(4096), worker varchar, expires_at bigint, alerted_at bigint,
                created_at timestamptz(0) DEFAULT now(), completed_at timestamptz(3))"
        }
    }
}

pub(in crate::cases) async fn c19_a_table_that_was_made_by_hand_will_do(site: &Site) {
    site.execute(by_hand(site)).await;
    let long = "w".repeat(1_000);
    let w = site.worker_by(|builder| short_lived(builder.worker(&long))).await;
    live(&w, "a").await;
    let row = w.row("life-plain:a-0").await;
    assert_eq!(row.worker.expect("a label").len(), 255, "what has no bound is cut");
    assert_eq!(row.result.as_deref(), Some("\"a-0\""));
    assert_eq!(row.owner.expect("an owner").len(), 32);
    assert!(row.completed_at.expect("a moment") > 0 && row.created_at > 0);

    // The same by a row in which nothing but the key was written, and one in which all was.
    site.execute("INSERT INTO idempotency_keys (\"key\") VALUES ('life-plain:bare')").await;
    assert_eq!(plain(&w, "bare").await.expect_err("a foreign claim").idem().kind(), ErrorKind::InProgress);
    assert_eq!(replayed(mail(&w, "a")).await, "a");
    let other = site.worker_by(|builder| builder.migrate(false)).await;
    assert_eq!(replayed(plain(&other, "a-1")).await, "a-1");
}

/// A column, another type for it, and the name under which the database has that type.
type Wrong = (&'static str, &'static str, &'static str);

const OF_SQLITE: [Wrong; 8] = [
    ("status", "INTEGER", "INTEGER"),
    ("owner", "BLOB", "BLOB"),
    ("fence", "TEXT", "TEXT"),
    ("attempt", "REAL", "REAL"),
    ("lease_until", "NUMERIC", "NUMERIC"),
    ("result", "JSONB", "NUMERIC"),
    ("worker", "", "BLOB"),
    ("completed_at", "INTEGER", "INTEGER"),
];

const OF_MYSQL: [Wrong; 12] = [
    ("status", "enum('processing', 'completed', 'failed', 'released', 'needs_review')", "enum"),
    ("job", "text CHARACTER SET latin1", "text CHARACTER SET latin1"),
    ("mode", "set('lock_first', 'record_after')", "set"),
    ("owner", "binary(32)", "binary"),
    ("fence", "int NOT NULL DEFAULT 0", "int"),
    ("attempt", "varchar(10)", "varchar"),
    ("lease_until", "datetime(6)", "datetime"),
    ("expires_at", "bigint unsigned", "bigint unsigned"),
    ("worker", "blob", "blob"),
    ("alerted_at", "decimal(20, 6)", "decimal"),
    ("created_at", "datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)", "datetime"),
    ("completed_at", "bigint", "bigint"),
];

const OF_POSTGRES: [Wrong; 19] = [
    ("key", "bytea USING convert_to(key, 'UTF8')", "bytea"),
    ("status", "state USING status::state", "state"),
    ("job", "char(64)", "bpchar"),
    ("template", "label", "label"),
    ("mode", "name", "name"),
    ("on_stale", "\"char\" USING NULL", "char"),
    ("owner", "uuid USING owner::uuid", "uuid"),
    ("fence", "integer USING 1", "int4"),
    ("attempt", "bigint", "int8"),
    ("takeovers", "smallint", "int2"),
    ("lease_until", "timestamptz USING NULL", "timestamptz"),
    ("fingerprint", "bytea USING convert_to(fingerprint, 'UTF8')", "bytea"),
    ("result", "jsonb USING result::jsonb", "jsonb"),
    ("error", "text[] USING ARRAY[error]", "_text"),
    ("worker", "inet USING NULL", "inet"),
    ("expires_at", "numeric", "numeric"),
    ("alerted_at", "double precision", "float8"),
    ("created_at", "timestamp", "timestamp"),
    ("completed_at", "text", "text"),
];

async fn refusal(site: &Site) -> String {
    let error = Idem::builder().url(site.database.url()).connect().await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    error.to_string()
}

/// An enumeration among them: it would refuse the words of a newer build.
pub(in crate::cases) async fn c19_a_type_that_will_not_do_is_named_at_the_start(site: &Site) {
    let wrong: &[Wrong] = match site.backend() {
        Backend::Memory => &[],
        Backend::Mysql => &OF_MYSQL,
        Backend::Sqlite => &OF_SQLITE,
        Backend::Postgres => &OF_POSTGRES,
    };
    for (column, type_name, found) in wrong {
        site.clear().await;
        executed(plain(&site.worker().await, "a")).await;
        match site.backend() {
            Backend::Memory => {}
            Backend::Mysql => {
                let change = format!(
                    "ALTER TABLE idempotency_keys DROP INDEX idempotency_keys_claims, DROP COLUMN {column},
                     ADD COLUMN {column} {type_name}"
                );
                site.execute(&change).await;
            }
            Backend::Sqlite => {
                let change = format!(
                    "DROP INDEX idempotency_keys_expires; DROP INDEX idempotency_keys_claims;
                     ALTER TABLE idempotency_keys DROP COLUMN {column};
                     ALTER TABLE idempotency_keys ADD COLUMN {column} {type_name}"
                );
                site.execute(&change).await;
            }
            Backend::Postgres => {
                let change = format!(
                    "DROP TYPE IF EXISTS state; DROP DOMAIN IF EXISTS label;
                     CREATE TYPE state AS ENUM ('processing', 'completed', 'failed', 'released', 'needs_review');
                     CREATE DOMAIN label AS text CHECK (length(value) < 100);
                     ALTER TABLE idempotency_keys ALTER COLUMN status DROP DEFAULT;
                     DROP INDEX idempotency_keys_expires; DROP INDEX idempotency_keys_claims;
                     ALTER TABLE idempotency_keys ALTER COLUMN {column} TYPE {type_name}"
                );
                site.execute(&change).await;
            }
        }
        let text = refusal(site).await;
        assert!(text.contains(&format!("column `{column}` of")), "{text}");
        assert!(text.contains(&format!("has type `{found}`")), "{text}");
        assert!(text.contains("it must be `"), "{text}");
    }
}

/// A result that its column cannot hold would be found out when the effect has happened.
pub(in crate::cases) async fn c19_a_column_that_is_too_narrow_is_named_at_the_start(site: &Site) {
    for (column, room) in [
        ("key", 254),
        ("status", 10),
        ("job", 50),
        ("template", 100),
        ("mode", 8),
        ("on_stale", 4),
        ("owner", 31),
        ("fingerprint", 40),
        ("result", 65_535),
        ("error", 255),
        ("worker", 20),
    ] {
        site.clear().await;
        site.worker().await;
        site.execute(&format!("ALTER TABLE idempotency_keys ALTER COLUMN {column} TYPE varchar({room})"))
            .await;
        let text = refusal(site).await;
        assert!(text.contains(&format!("column `{column}` of")), "{text}");
        assert!(text.contains(&format!("`varchar({room})`; it must hold")), "{text}");
        let needed =
            text.rsplit("it must hold ").next().and_then(|rest| rest.split(' ').next()).expect("a number");
        site.execute(&format!("ALTER TABLE idempotency_keys ALTER COLUMN {column} TYPE varchar({needed})"))
            .await;
        executed(plain(&site.worker().await, "a")).await;
    }
}

pub(in crate::cases) async fn c19_a_column_that_takes_no_null_is_named_at_the_start(site: &Site) {
    for column in ["owner", "result", "lease_until", "completed_at"] {
        site.clear().await;
        match site.backend() {
            Backend::Memory => {}
            Backend::Mysql => {
                site.worker().await;
                let type_name = match column {
                    "lease_until" => "bigint",
                    "completed_at" => "timestamp(6)",
                    _ => "longtext CHARACTER SET utf8mb4",
                };
                let change = format!("ALTER TABLE idempotency_keys MODIFY {column} {type_name} NOT NULL");
                site.execute(&change).await;
            }
            Backend::Sqlite => {
                let ddl = Idem::builder().url(site.database.url()).ddl().expect("the DDL");
                let at = ddl.find(&format!("    {column} ")).expect("the column");
                let end = at + ddl[at..].find([',', '\n']).expect("its end");
                site.execute(&format!("{} NOT NULL{}", &ddl[..end], &ddl[end..])).await;
            }
            Backend::Postgres => {
                site.worker().await;
                site.execute(&format!("ALTER TABLE idempotency_keys ALTER COLUMN {column} SET NOT NULL"))
                    .await;
            }
        }
        let text = refusal(site).await;
        assert!(text.contains(&format!("column `{column}` of")) && text.contains("`NOT NULL`"), "{text}");
    }
}

/// Two keys that differ for us, and not for a collation, would be one row.
pub(in crate::cases) async fn c19_a_key_that_is_not_compared_byte_by_byte_is_named_at_the_start(site: &Site) {
    site.worker().await;
    match site.backend() {
        Backend::Memory => {}
        Backend::Mysql => {
            site.execute(
                "ALTER TABLE idempotency_keys MODIFY `key` varchar(255) CHARACTER SET utf8mb4
                     COLLATE utf8mb4_general_ci NOT NULL",
            )
            .await;
        }
        Backend::Sqlite => {
            let ddl = Idem::builder().url(site.database.url()).ddl().expect("the DDL");
            let ddl = ddl.replacen("key TEXT NOT NULL", "key TEXT NOT NULL COLLATE NOCASE", 1);
            site.execute(&format!("DROP TABLE idempotency_keys; {ddl}")).await;
        }
        Backend::Postgres => {
            site.execute(
                "CREATE COLLATION blurred (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
                 ALTER TABLE idempotency_keys ALTER COLUMN key TYPE varchar(255) COLLATE blurred",
            )
            .await;
        }
    }
    let text = refusal(site).await;
    assert!(text.contains("byte"), "{text}");
}
