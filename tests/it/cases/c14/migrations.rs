//! The application's own migrations, and those of another library, in the same database.

use std::{fs, path::Path};

use sqlx::{
    MySqlConnection, PgConnection, SqliteConnection,
    migrate::{MigrateError, Migrator},
};
use tempfile::TempDir;

use crate::cases::{
    call::{executed, replayed},
    life::{live, plain, short_lived},
    site::{Connected, Site},
};

/// Somebody's migrations, of which more are written as time goes by.
struct Migrations {
    folder: TempDir,
    tables: &'static str,
    /// The table that remembers which were run; the default of sqlx if there is none.
    book: Option<&'static str>,
    versions: usize,
}

impl Migrations {
    fn of(tables: &'static str, book: Option<&'static str>) -> Self {
        let folder = TempDir::with_prefix("idem-migrations-").expect("a temporary folder");
        Self { folder, tables, book, versions: 0 }
    }

    /// Writes one more migration.
    fn write(&mut self) {
        self.versions += 1;
        let version = self.versions;
        let sql = match version {
            1 => format!("CREATE TABLE {} (id integer PRIMARY KEY);", self.tables),
            _ => format!("ALTER TABLE {} ADD COLUMN c{version} integer;", self.tables),
        };
        let file = Path::join(self.folder.path(), format!("{version}_step.sql"));
        fs::write(file, sql).expect("a migration");
    }

    /// Runs what was not run yet, as the start of an application does.
    async fn run(&self, site: &Site) -> Result<(), MigrateError> {
        let mut migrator = Migrator::new(self.folder.path()).await.expect("migrations");
        if let Some(book) = self.book {
            migrator.dangerous_set_table_name(book);
        }
        match site.connection().await {
            Connected::Sqlite(mut connection) => migrator.run::<&mut SqliteConnection>(&mut connection).await,
            Connected::Mysql(mut connection) => migrator.run::<&mut MySqlConnection>(&mut connection).await,
            Connected::Postgres(mut connection) => migrator.run::<&mut PgConnection>(&mut connection).await,
        }
    }

    /// The book holds what was written, and nothing of anybody else.
    async fn are_all_and_alone(&self, site: &Site) {
        let book = self.book.unwrap_or("_sqlx_migrations");
        let count = site.number(&format!("SELECT count(*) FROM {book}")).await;
        assert_eq!(usize::try_from(count).expect("small"), self.versions, "{book}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Application,
    Library,
    Us,
}

/// Every order of three starts, and each of them twice with news in between.
pub(in crate::cases) async fn c14_migrations_of_others_and_ours_do_not_meet(site: &Site) {
    use Who::{Application, Library, Us};
    let orders = [
        [Application, Us, Library],
        [Us, Application, Library],
        [Application, Library, Us],
        [Library, Us, Application],
    ];
    for (n, order) in orders.into_iter().enumerate() {
        let site = Site::on(site.backend());
        let mut application = Migrations::of("app", None);
        let mut library = Migrations::of("lib", Some("_lib_migrations"));
        for round in 0..3 {
            application.write();
            library.write();
            for who in order {
                match who {
                    Application => application.run(&site).await.expect("the application's own"),
                    Library => library.run(&site).await.expect("the library's own"),
                    Us => {
                        let w = site.worker_by(short_lived).await;
                        live(&w, &format!("{n}-{round}")).await;
                        replayed(plain(&w, &format!("{n}-0-0"))).await;
                    }
                }
            }
            application.are_all_and_alone(&site).await;
            library.are_all_and_alone(&site).await;
        }
        // Nobody's start has anything to do now, or anything to complain of.
        for _ in 0..2 {
            application.run(&site).await.expect("nothing to do");
            library.run(&site).await.expect("nothing to do");
            replayed(plain(&site.worker_by(|builder| builder.migrate(false)).await, &format!("{n}-0-0")))
                .await;
        }
    }
}

/// All start at the same moment, on an empty database.
pub(in crate::cases) async fn c14_migrations_that_run_at_once_do_not_meet(site: &Site) {
    for round in 0..5 {
        let site = Site::on(site.backend());
        let mut application = Migrations::of("app", None);
        let mut library = Migrations::of("lib", Some("_lib_migrations"));
        for _ in 0..3 {
            application.write();
            library.write();
        }
        let (ours, others, theirs, librarys) = tokio::join!(
            site.worker(),
            site.worker_by(|builder| builder.table("others")),
            application.run(&site),
            library.run(&site),
        );
        theirs.expect("the application's own");
        librarys.expect("the library's own");
        for w in [ours, others] {
            executed(plain(&w, &round.to_string())).await;
        }
        application.are_all_and_alone(&site).await;
        library.are_all_and_alone(&site).await;
    }
}

/// What an application that dumps and loads its schema does to ours: the tables come back by its own migrations.
pub(in crate::cases) async fn c14_the_table_may_be_made_by_the_applications_own_migrations(site: &Site) {
    let ddl = idem_runtime::Idem::builder().url(site.database.url()).ddl().expect("the DDL");
    let mut application = Migrations::of("app", None);
    application.write();
    application.versions += 1;
    let file = Path::join(application.folder.path(), format!("{}_idem.sql", application.versions));
    fs::write(file, ddl).expect("a migration");
    application.run(site).await.expect("ours among its own");
    let w = site.worker_by(|builder| short_lived(builder.migrate(false))).await;
    live(&w, "a").await;
    application.write();
    application.run(site).await.expect("one more");
    replayed(plain(&w, "a-0")).await;
}
