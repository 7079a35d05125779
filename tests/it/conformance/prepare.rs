//! The table comes to be, once.

use idem_runtime::store::ErrorClass;

use super::{
    rows,
    subject::{Subject, race},
};

pub(super) async fn preparing_again_changes_nothing(s: &Subject) {
    s.claim("billing:1", 1).await;
    let before = rows::at_rest(s.row("billing:1").await);
    for create in [true, false] {
        s.another().prepare(create).await.expect("in place");
    }
    assert_eq!(rows::at_rest(s.row("billing:1").await), before);
}

pub(super) async fn ten_processes_prepare_at_once(s: &Subject) {
    let empty = s.empty().await;
    let prepared = race((0..10).map(|_| {
        let store = empty.another();
        async move { store.prepare(true).await.map_err(|error| error.to_string()) }
    }))
    .await;
    assert_eq!(prepared, vec![Ok(()); 10]);
    empty.claim("billing:1", 1).await;
}

pub(super) async fn a_missing_table_is_refused_where_it_may_not_be_made(s: &Subject) {
    let empty = s.empty().await;
    let error = empty.store.prepare(false).await.expect_err("no table");
    assert_eq!(error.class, ErrorClass::Permanent);
    assert!(error.to_string().contains("ddl"), "says where the statements are: {error}");
    empty.raw.execute(empty.store.ddl()).await;
    empty.store.prepare(false).await.expect("made by hand from the DDL");
    empty.claim("billing:1", 1).await;
}

pub(super) async fn a_table_that_lacks_columns_is_refused_with_what_to_run(s: &Subject) {
    s.raw.execute("ALTER TABLE idempotency_keys DROP COLUMN worker").await;
    for create in [true, false] {
        let error = s.another().prepare(create).await.expect_err("a column is missing");
        assert_eq!(error.class, ErrorClass::Permanent);
        let text = error.to_string();
        let alter = text.find("ALTER TABLE").map(|at| text[at..].to_owned()).unwrap_or_default();
        assert!(alter.contains("worker"), "{text}");
    }
}

pub(super) async fn a_schema_of_a_newer_version_is_refused_by_name(s: &Subject) {
    s.raw.execute("UPDATE idempotency_keys_schema SET version = version + 1000").await;
    let version = s.raw.number("SELECT max(version + fence_floor) FROM idempotency_keys_schema").await;
    let error = s.another().prepare(true).await.expect_err("a newer schema");
    assert_eq!(error.class, ErrorClass::Permanent);
    assert!(error.to_string().contains(&version.to_string()), "{error}");
}
