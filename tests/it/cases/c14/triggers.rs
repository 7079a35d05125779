//! Triggers of the application on our table: whatever they write beside it, the answers are the same.

use idem_runtime::{Resolution, Resolved, idempotent};
use idem_tests::Backend;
use sqlx::Transaction;

use super::super::{
    call::{Fault, executed, replayed},
    life::{ROWS, live, short_lived},
    site::{Site, Worker},
};
use crate::transact::{
    dialect::Dialect,
    stage::{Stage, plays, put},
};

/// Has each change of a row noted in a table that numbers what it notes.
async fn note_changes(site: &Site) {
    let log = match site.backend() {
        Backend::Mysql => "CREATE TABLE noted (n bigint PRIMARY KEY AUTO_INCREMENT, what varchar(255))",
        Backend::Postgres => "CREATE TABLE noted (n bigserial PRIMARY KEY, what text)",
        _ => "CREATE TABLE noted (n integer PRIMARY KEY AUTOINCREMENT, what text)",
    };
    site.execute(log).await;
    if site.backend() == Backend::Postgres {
        let note = "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO noted (what) VALUES (COALESCE(NEW.key, OLD.key)); RETURN NULL; END $$";
        site.execute(note).await;
    }
    for (name, change, row) in
        [("born", "INSERT", "NEW"), ("changed", "UPDATE", "NEW"), ("gone", "DELETE", "OLD")]
    {
        let on = format!("CREATE TRIGGER {name} AFTER {change} ON idempotency_keys FOR EACH ROW");
        let note = match site.backend() {
            Backend::Postgres => "EXECUTE FUNCTION note()".to_owned(),
            Backend::Mysql => format!("INSERT INTO noted (what) VALUES ({row}.`key`)"),
            _ => format!("BEGIN INSERT INTO noted (what) VALUES ({row}.key); END"),
        };
        site.execute(&format!("{on} {note}")).await;
    }
}

pub(in crate::cases) async fn c14_triggers_of_others_change_no_answer(site: &Site) {
    let w = site.worker_by(short_lived).await;
    note_changes(site).await;
    live(&w, "x").await;
    let free = w.idem.resolve("life-plain:x-0", Resolution::Retry).force().await.expect("an answer");
    assert!(matches!(free, Resolved::Changed { .. }), "{free:?}");
    assert_eq!(site.number("SELECT count(*) FROM idempotency_keys").await, ROWS);
    assert!(site.number("SELECT count(*) FROM noted").await >= 2 * ROWS, "each change was noted");
}

#[idempotent(key = "c14-noted:<id>", mode = "transactional", idem = w.idem)]
async fn noted<DB: Dialect>(w: &Worker, tx: &mut Transaction<'_, DB>, id: &str) -> Result<String, Fault> {
    w.effect(id);
    put::<DB>(tx, id).await?;
    Ok(id.to_owned())
}

async fn inside<DB: Dialect>(stage: &Stage<'_, DB>) {
    note_changes(stage.site).await;
    // A key that is new, one that was released, and one of somebody else, who counts from one.
    for (id, fence) in [("new", None), ("again", Some("1700000000000000")), ("foreign", Some("1"))] {
        if let Some(fence) = fence {
            let values = format!("'released', 'somebody', {fence}, 1");
            stage.stands(&format!("c14-noted:{id}"), "status, owner, fence, attempt", &values).await;
        }
        let mut tx = stage.begin().await;
        assert_eq!(executed(noted(&stage.w, &mut tx, id)).await, id);
        assert_eq!(replayed(noted(&stage.w, &mut tx, id)).await, id);
        tx.commit().await.expect("a commit");
        stage.holds(&format!("c14-noted:{id}"), id).await;
    }
}

pub(in crate::cases) async fn c14_triggers_of_others_change_no_answer_in_a_transaction(site: &Site) {
    plays!(site, inside);
}
