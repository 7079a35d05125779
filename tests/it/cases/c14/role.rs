use std::thread;

use idem_tests::Backend;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use url::Url;

use crate::cases::site::Site;

const PASSWORD: &str = "idem";

/// An account of the server that may connect and nothing else; gone when it is dropped.
pub(super) struct Role {
    pub(super) name: String,
    url: Url,
    admin: String,
}

impl Role {
    pub(super) async fn new(site: &Site) -> Self {
        let admin = site.database.url().to_owned();
        let mut url = Url::parse(&admin).expect("a URL");
        let name = format!("role_of_{}", url.path().trim_start_matches('/'));
        match site.backend() {
            Backend::Postgres => {
                site.execute(&format!("CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")).await;
            }
            Backend::Mysql => {
                site.execute(&format!("CREATE USER {name} IDENTIFIED BY '{PASSWORD}'")).await;
            }
            backend @ (Backend::Memory | Backend::Sqlite) => panic!("{backend} knows no accounts"),
        }
        url.set_username(&name).and_then(|()| url.set_password(Some(PASSWORD))).expect("a URL with a host");
        Self { name, url, admin }
    }

    /// The site's database, as this account reaches it.
    pub(super) fn url(&self) -> &str {
        self.url.as_str()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let drop_role = format!("DROP OWNED BY {0}; DROP ROLE {0}", self.name);
        let run = async || {
            let mut connection = PgConnection::connect(&self.admin).await?;
            sqlx::raw_sql(AssertSqlSafe(drop_role)).execute(&mut connection).await
        };
        let on_own_runtime = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(sqlx::Error::Io)?.block_on(run())
        };
        let dropped =
            thread::scope(|scope| scope.spawn(on_own_runtime).join().expect("the statement's thread ends"));
        if let Err(error) = dropped {
            eprintln!("the role {} stays behind: {error}", self.name);
        }
    }
}
