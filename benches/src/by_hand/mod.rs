//! Publishing without the library: what somebody would write who knows the table.

mod mysql;
mod postgres;
mod sqlite;

use uuid::Uuid;

use crate::{database::Bench, event::Happened, site::Site};

/// A record as it is written by hand.
#[derive(Debug)]
pub(crate) struct NewRow {
    pub(crate) event_id: Uuid,
    pub(crate) key: String,
    pub(crate) part: i16,
    pub(crate) payload: String,
}

/// The statements of publishing.
pub(crate) trait ByHand: sqlx::Database {
    /// A row of the application itself, into `business (id, note)`.
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
        // One number of two, since all databases agree on its type.
        let sql = "select n * 1000 + part from bench_key order by n";
        let numbers = Db::numbers(&site.pool, sql).await?;
        let parts = numbers.iter().map(|number| i16::try_from(number % 1000));
        Ok(Self(parts.collect::<Result<_, _>>()?))
    }

    /// The same work for an event as the library has: an id, its text, its partition.
    pub(crate) fn row(&self, event: &Happened) -> anyhow::Result<NewRow> {
        let part = self.0.get(usize::try_from(event.key)?);
        Ok(NewRow {
            event_id: Uuid::now_v7(),
            key: event.key.to_string(),
            part: part.copied().unwrap_or_default(),
            payload: serde_json::to_string(event)?,
        })
    }
}
