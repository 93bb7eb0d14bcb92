//! Reads for a test: the published events, and the state of their records.

use sqlx::SqliteConnection;

use super::{Kit, KitError, error::database};
use crate::{
    operations::{Delivery, RecordStatus},
    outbox::Result,
    record::{EventError, OutboxEvent, Record},
    store::sqlite::testing as sql,
};

impl Kit {
    /// The events of type `E` that this open transaction has published, in order. Events of other
    /// transactions are not included.
    ///
    /// # Errors
    /// The database fails, or a payload cannot be decoded as `E`.
    pub async fn published<E: OutboxEvent>(
        &self,
        transaction: &mut SqliteConnection,
    ) -> Result<Vec<E>> {
        decoded(&self.published_records(transaction).await?)
    }

    /// The records that this open transaction has published, in order, with keys and headers.
    ///
    /// # Errors
    /// The database fails.
    pub async fn published_records(
        &self,
        transaction: &mut SqliteConnection,
    ) -> Result<Vec<Record>> {
        let names = &self.outbox.inner.names;
        // Another connection sees only committed records. Ids grow, and SQLite has one writer at a
        // time, so all higher ids belong to this transaction.
        let mut committed = self.pool().acquire().await.map_err(database)?;
        let highest = sql::highest(&mut committed, names).await;
        let highest = highest.map_err(database)?;
        let records = sql::records(transaction, names, highest).await;
        records.map_err(database)
    }

    /// All committed events of type `E`, in order, in whatever state their records are. Use it for
    /// code that commits its own transactions.
    ///
    /// # Errors
    /// The database fails, or a payload cannot be decoded as `E`.
    pub async fn committed<E: OutboxEvent>(&self) -> Result<Vec<E>> {
        let mut connection = self.pool().acquire().await.map_err(database)?;
        let records = sql::records(&mut connection, &self.outbox.inner.names, 0).await;
        decoded(&records.map_err(database)?)
    }

    /// The status of a record.
    ///
    /// # Errors
    /// There is no such record, or the database fails.
    pub async fn status(&self, record_id: i64) -> Result<RecordStatus> {
        let found = self.outbox.operations().inspect(record_id).await?;
        let found = found.ok_or(KitError::NoSuchRecord(record_id))?;
        Ok(found.status)
    }

    /// The deliveries of a record, sorted by handler: one for each handler that did not complete it at
    /// the first attempt. A pending record has none.
    ///
    /// # Errors
    /// The database fails.
    pub async fn deliveries(&self, record_id: i64) -> Result<Vec<Delivery>> {
        let found = self.outbox.operations().inspect(record_id).await?;
        let mut deliveries = found.map(|found| found.deliveries).unwrap_or_default();
        deliveries.sort_by(|one, other| one.handler.cmp(&other.handler));
        Ok(deliveries)
    }
}

fn decoded<E: OutboxEvent>(records: &[Record]) -> Result<Vec<E>> {
    let of_type = records.iter().filter(|record| record.event == E::NAME);
    let events = of_type.map(|record| {
        E::from_json(&record.payload).map_err(|error| EventError::Invalid {
            event: E::NAME,
            source: error.into(),
        })
    });
    Ok(events.collect::<Result<_, _>>()?)
}
