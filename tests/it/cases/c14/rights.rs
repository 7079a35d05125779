//! Who may do what with the table.

use idem_runtime::{Error, ErrorKind, Idem};

use super::role::Role;
use crate::cases::{
    call::{executed, replayed},
    life::{ROWS, live, plain, short_lived},
    site::Site,
};

const TABLES: [&str; 3] = ["idempotency_keys", "idempotency_keys_audit", "idempotency_keys_schema"];

async fn grant(site: &Site, role: &Role, rights: &str) {
    for table in TABLES {
        site.execute(&format!("GRANT {rights} ON {table} TO {}", role.name)).await;
    }
}

async fn connect(role: &Role) -> Result<Idem, Error> {
    short_lived(Idem::builder().url(role.url())).connect().await
}

pub(in crate::cases) async fn c14_a_role_that_may_only_read_and_write_rows_is_enough(site: &Site) {
    site.worker().await;
    let role = Role::new(site).await;
    grant(site, &role, "SELECT, INSERT, UPDATE, DELETE").await;
    let w = site.worker_of(connect(&role).await.expect("no DDL where the table is in place"));
    live(&w, "a").await;
    assert_eq!(site.number("SELECT count(*) FROM idempotency_keys").await, ROWS);
}

/// Whoever may make tables makes none where they are.
pub(in crate::cases) async fn c14_no_ddl_is_sent_where_the_table_is_in_place(site: &Site) {
    executed(plain(&site.worker().await, "a")).await;
    site.execute(
        "CREATE FUNCTION frozen() RETURNS event_trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'a change freeze is on'; END $$;
        CREATE EVENT TRIGGER frozen ON ddl_command_start EXECUTE FUNCTION frozen()",
    )
    .await;
    let w = site.worker_by(short_lived).await;
    replayed(plain(&w, "a")).await;
    live(&w, "b").await;
    let other = Idem::builder().url(site.database.url()).table("other").connect().await;
    assert!(
        other.is_err_and(|error| error.to_string().contains("a change freeze is on")),
        "the freeze is on"
    );
}

pub(in crate::cases) async fn c14_a_role_that_may_not_create_is_given_the_statements(site: &Site) {
    let role = Role::new(site).await;
    let error = connect(&role).await.expect_err("no table, and no right to make one");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(!error.is_retryable());
    let text = error.to_string();
    let (advice, statements) = text.split_once("\nCREATE TABLE").expect("the statements to run");
    assert!(advice.contains("grant it SELECT, INSERT, UPDATE and DELETE on the three tables"), "{text}");
    site.execute(&format!("CREATE TABLE{statements}")).await;

    // The table is there, and still not this role's to use.
    let error = connect(&role).await.expect_err("no rights");
    assert!(error.to_string().contains("on the three tables"), "{error}");
    grant(site, &role, "SELECT, INSERT, UPDATE, DELETE").await;
    let w = site.worker_of(connect(&role).await.expect("all that is needed"));
    live(&w, "a").await;
}

/// The same where the table itself may not even be seen: its schema is somebody else's.
pub(in crate::cases) async fn c14_a_schema_that_may_not_be_entered_is_told(site: &Site) {
    site.execute("CREATE SCHEMA ops").await;
    site.worker_by(|builder| builder.schema("ops")).await;
    let role = Role::new(site).await;
    let error = Idem::builder().url(role.url()).schema("ops").connect().await.expect_err("no way in");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("permission denied for schema ops"), "{error}");
}

pub(in crate::cases) async fn c14_a_right_that_is_missing_is_named_before_a_body_runs(site: &Site) {
    site.worker().await;
    let role = Role::new(site).await;
    for right in ["SELECT", "INSERT", "UPDATE"] {
        grant(site, &role, "SELECT, INSERT, UPDATE, DELETE").await;
        site.execute(&format!("REVOKE {right} ON idempotency_keys FROM {}", role.name)).await;
        let error = connect(&role).await.expect_err("a right is missing");
        assert_eq!(error.kind(), ErrorKind::Config);
        let text = error.to_string();
        assert!(text.contains(&format!("lacks the right to {right}")), "{text}");
        assert!(text.contains("idempotency_keys"), "{text}");
    }
    // A takeover and a review leave their lines.
    grant(site, &role, "SELECT, INSERT, UPDATE, DELETE").await;
    site.execute(&format!("REVOKE INSERT ON idempotency_keys_audit FROM {}", role.name)).await;
    let text = connect(&role).await.expect_err("a right is missing").to_string();
    assert!(text.contains("lacks the right to INSERT") && text.contains("idempotency_keys_audit"), "{text}");
    // Purging needs one more, and says so; jobs do not.
    grant(site, &role, "SELECT, INSERT, UPDATE, DELETE").await;
    site.execute(&format!("REVOKE DELETE ON idempotency_keys FROM {}", role.name)).await;
    let w = site.worker_of(connect(&role).await.expect("enough for jobs"));
    executed(plain(&w, "a")).await;
    let error = w.idem.purge().await.expect_err("nothing may be deleted");
    assert_eq!(error.kind(), ErrorKind::Store);
    assert!(error.to_string().contains("permission denied"), "{error}");
    assert_eq!(site.effects("a"), 1);
}
