//! What was published, and what became of it.

use sqlx::SqliteConnection;

use super::{Kit, KitError, error::database};
use crate::{
    operations::{Delivery, RecordStatus},
    outbox::Result,
    record::{EventError, OutboxEvent, Record},
    store::sqlite::testing as sql,
};

impl Kit {
    /// The events of this type that an open transaction has published so far, in order. What was
    /// committed before is not among them, nor what another transaction did.
    ///
    /// # Errors
    /// When the database fails, or one is not readable as `E`.
    pub async fn published<E: OutboxEvent>(
        &self,
        transaction: &mut SqliteConnection,
    ) -> Result<Vec<E>> {
        decoded(&self.published_records(transaction).await?)
    }

    /// All that an open transaction has published so far, in order, with keys and headers.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn published_records(
        &self,
        transaction: &mut SqliteConnection,
    ) -> Result<Vec<Record>> {
        let names = &self.outbox.inner.names;
        // Another connection sees what is committed, and nothing else. Ids grow, and one
        // transaction at a time draws them.
        let mut committed = self.pool().acquire().await.map_err(database)?;
        let highest = sql::highest(&mut committed, names).await;
        let highest = highest.map_err(database)?;
        let records = sql::records(transaction, names, highest).await;
        records.map_err(database)
    }

    /// The events of this type that were ever committed, in order, whatever became of them. For
    /// code that commits its own transactions.
    ///
    /// # Errors
    /// When the database fails, or one is not readable as `E`.
    pub async fn committed<E: OutboxEvent>(&self) -> Result<Vec<E>> {
        let mut connection = self.pool().acquire().await.map_err(database)?;
        let records = sql::records(&mut connection, &self.outbox.inner.names, 0).await;
        decoded(&records.map_err(database)?)
    }

    /// What a record waits for.
    ///
    /// # Errors
    /// When there is no such record, or the database fails.
    pub async fn status(&self, record_id: i64) -> Result<RecordStatus> {
        let found = self.outbox.operations().inspect(record_id).await?;
        let found = found.ok_or(KitError::NoSuchRecord(record_id))?;
        Ok(found.status)
    }

    /// Where a record stands with each handler that did not finish with it at once, by handler.
    /// None while it is pending, and none if all finished at their first attempt.
    ///
    /// # Errors
    /// When the database fails.
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
