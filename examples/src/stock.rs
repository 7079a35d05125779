use std::future::Future;

use sqlx::{MySql, Postgres, QueryBuilder, Sqlite, Transaction};

use crate::Begin;

/// A database that can keep the [warehouse](crate::Warehouse): what the shop writes there, in a transaction of its
/// caller's.
pub trait Stock: Begin {
    /// Puts pieces of an article on the shelf, which has none of it yet.
    ///
    /// # Errors
    ///
    /// The database refuses it.
    fn take_in(
        tx: &mut Transaction<'_, Self>,
        article: &str,
        pieces: i64,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Takes pieces from the shelf and reserves them for an order. Whether there were so many.
    ///
    /// # Errors
    ///
    /// The database refuses it.
    fn reserve(
        tx: &mut Transaction<'_, Self>,
        order: i64,
        article: &str,
        pieces: i64,
    ) -> impl Future<Output = sqlx::Result<bool>> + Send;
}

macro_rules! stock {
    ($($database:ty)+) => {
        $(
            impl Stock for $database {
                async fn take_in(
                    tx: &mut Transaction<'_, Self>,
                    article: &str,
                    pieces: i64,
                ) -> sqlx::Result<()> {
                    let mut insert = QueryBuilder::new("INSERT INTO stock (article, received, pieces) VALUES (");
                    insert.separated(", ").push_bind(article).push_bind(pieces).push_bind(pieces);
                    insert.push(")").build().execute(&mut **tx).await?;
                    Ok(())
                }

                async fn reserve(
                    tx: &mut Transaction<'_, Self>,
                    order: i64,
                    article: &str,
                    pieces: i64,
                ) -> sqlx::Result<bool> {
                    let mut update = QueryBuilder::new("UPDATE stock SET pieces = pieces - ");
                    update.push_bind(pieces).push(" WHERE article = ").push_bind(article);
                    update.push(" AND pieces >= ").push_bind(pieces);
                    if update.build().execute(&mut **tx).await?.rows_affected() == 0 {
                        return Ok(false);
                    }
                    let mut insert =
                        QueryBuilder::new("INSERT INTO reservations (order_id, article, pieces) VALUES (");
                    insert.separated(", ").push_bind(order).push_bind(article).push_bind(pieces);
                    insert.push(")").build().execute(&mut **tx).await?;
                    Ok(true)
                }
            }
        )+
    };
}

stock!(Sqlite Postgres MySql);
