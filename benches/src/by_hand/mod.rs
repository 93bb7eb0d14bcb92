//! Publishing without the library: inserts that a user could write by hand.

mod mysql;
mod postgres;
mod sqlite;

use uuid::Uuid;

use crate::{database::Bench, event::Happened, site::Site};

/// A record that is inserted by hand.
#[derive(Debug)]
pub(crate) struct NewRow {
    pub(crate) event_id: Uuid,
    pub(crate) key: String,
    pub(crate) partition: i16,
    pub(crate) payload: String,
}

/// The statements of publishing.
pub(crate) trait ByHand: sqlx::Database {
    /// Inserts a row of the application into `business (id, note)`.
    fn insert_business(
        connection: &mut Self::Connection,
        id: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    fn insert_one(
        connection: &mut Self::Connection,
        row: &NewRow,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    fn insert_many(
        connection: &mut Self::Connection,
        rows: &[NewRow],
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

/// The partition of each key.
#[derive(Debug, Clone)]
pub(crate) struct Partitions(Vec<i16>);

impl Partitions {
    pub(crate) async fn read<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Self> {
        // One column for two numbers, because all databases have the same type for it.
        let sql = "select n * 1000 + part from bench_key order by n";
        let numbers = Db::numbers(&site.pool, sql).await?;
        let partitions = numbers.iter().map(|number| i16::try_from(number % 1000));
        Ok(Self(partitions.collect::<Result<_, _>>()?))
    }

    /// Does the same work for an event as the library: an id, the payload, the partition.
    pub(crate) fn row(&self, event: &Happened) -> anyhow::Result<NewRow> {
        let partition = self.0.get(usize::try_from(event.key)?);
        Ok(NewRow {
            event_id: Uuid::now_v7(),
            key: event.key.to_string(),
            partition: partition.copied().unwrap_or_default(),
            payload: serde_json::to_string(event)?,
        })
    }
}
