//! Sessions of MySQL that begin with settings which are against us.

use std::{sync::Arc, time::Duration};

use idem_runtime::store::{self, Answer, Ending, Finish, Insert, Renew, Renewal, Store, StoreOptions};
use idem_tests::Backend;
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, raw_sql};
use url::Url;

use crate::rows::{LEASE, OWNER, claim};

/// What a server may be told to begin each session of this account with.
const AGAINST_US: &str = "SET SESSION sql_safe_updates = CURRENT_USER() LIKE '{name}%',
    sql_select_limit = IF(CURRENT_USER() LIKE '{name}%', 1, 18446744073709551615),
    max_join_size = IF(CURRENT_USER() LIKE '{name}%', 1, 18446744073709551615)";

/// Uses every kind of statement that writes many rows; how many of three rows each met.
async fn use_all(store: &dyn Store) -> Result<[u64; 4], store::StoreError> {
    store.prepare(true).await?;
    let keys: Vec<Arc<str>> = (0..3).map(|n| format!("settings:{n}").into()).collect();
    let inserts: Vec<_> = keys.iter().map(|key| Insert { key: Arc::clone(key), row: claim() }).collect();
    let mut claimed = Vec::new();
    for answer in store.insert(&inserts).await? {
        if let Answer::Written { fence } = answer {
            claimed.push(fence);
        }
    }
    let owned = || keys.iter().cloned().zip(claimed.iter().copied());
    let renewals: Vec<_> =
        owned().map(|(key, fence)| Renew { key, owner: OWNER.to_owned(), fence, lease: LEASE }).collect();
    let renewed =
        store.renew(&renewals).await?.into_iter().filter(|renewal| *renewal == Renewal::Renewed).count();
    let ending = || Ending::Completed { result: None, ttl: Some(Duration::ZERO) };
    let endings: Vec<_> = owned()
        .map(|(key, fence)| Finish { key, owner: OWNER.to_owned(), fence, ending: ending() })
        .collect();
    let finished = store.finish(&endings).await?;
    let finished = finished.into_iter().filter(|answer| matches!(answer, Answer::Written { .. })).count();
    let mut purged = 0;
    loop {
        match store.purge(10).await? {
            0 => break,
            some => purged += some,
        }
    }
    Ok([claimed.len() as u64, renewed as u64, finished as u64, purged])
}

#[tokio::test]
async fn every_statement_of_mysql_meets_its_rows_whatever_a_session_begins_with() {
    let Some(database) = Backend::Mysql.database() else { return };
    let mut admin = MySqlConnection::connect(database.url()).await.expect("a connection");
    let mut url = Url::parse(database.url()).expect("a URL");
    let schema = url.path().trim_start_matches('/').to_owned();
    let name = format!("user_of_{schema}");
    url.set_username(&name).and_then(|()| url.set_password(Some("idem"))).expect("a URL with a host");
    let begin = AGAINST_US.replace("{name}", &name).replace('\'', "''");
    for sql in [
        format!("CREATE USER {name} IDENTIFIED BY 'idem'"),
        format!("GRANT ALL PRIVILEGES ON {schema}.* TO {name}"),
        format!("SET GLOBAL init_connect = '{begin}'"),
    ] {
        raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await.expect("it is done");
    }
    let store = store::open(&StoreOptions::new(url.as_str())).expect("a store");
    let met = use_all(&*store).await;
    for sql in ["SET GLOBAL init_connect = ''".to_owned(), format!("DROP USER {name}")] {
        raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await.expect("it is done");
    }
    assert_eq!(met.expect("no statement is refused"), [3; 4]);
}
