use std::collections::{BTreeMap, BTreeSet};

use sqlx::{AnyConnection, Row as _};

use crate::database;

/// The shop's warehouse: a row for what is on the shelf of each article, and a row for what is reserved for an order.
///
/// It knows nothing of keys. No constraint keeps a second reservation out and nobody looks before reserving, so that
/// one would show. It lies in the database of the keys.
#[derive(Debug)]
pub struct Warehouse(AnyConnection);

/// What is in the warehouse.
#[derive(Debug)]
pub struct Inventory {
    /// The reservations for the orders that were asked for.
    pub reservations: u64,
    /// Whether of each article as many pieces are left as were received and not reserved.
    pub is_right: bool,
}

impl Warehouse {
    /// Opens the warehouse in the database that `IDEM_DATABASE_URL` names, or else in the default one.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub async fn open() -> sqlx::Result<Self> {
        let stock = "article VARCHAR(40) NOT NULL, received BIGINT NOT NULL, pieces BIGINT NOT NULL";
        let reservations = "order_id BIGINT NOT NULL, article VARCHAR(40) NOT NULL, pieces BIGINT NOT NULL";
        Ok(Self(database::connect(&[("stock", stock), ("reservations", reservations)]).await?))
    }

    /// Counts everything.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub async fn inventory(&mut self, orders: &BTreeSet<u64>) -> sqlx::Result<Inventory> {
        let mut expected = BTreeMap::<String, i64>::new();
        let mut found = BTreeMap::<String, i64>::new();
        let stock = sqlx::query("SELECT article, received, pieces FROM stock");
        for row in stock.fetch_all(&mut self.0).await? {
            *expected.entry(row.try_get(0)?).or_default() += row.try_get::<i64, _>(1)?;
            *found.entry(row.try_get(0)?).or_default() += row.try_get::<i64, _>(2)?;
        }
        let mut count = 0;
        let reservations = sqlx::query("SELECT article, order_id, pieces FROM reservations");
        for row in reservations.fetch_all(&mut self.0).await? {
            *expected.entry(row.try_get(0)?).or_default() -= row.try_get::<i64, _>(2)?;
            let order = u64::try_from(row.try_get::<i64, _>(1)?);
            count += u64::from(order.is_ok_and(|order| orders.contains(&order)));
        }
        Ok(Inventory { reservations: count, is_right: expected == found })
    }
}
