//! Publishing: from an event to a record in the caller's transaction.

use tracing::Instrument as _;

use crate::{
    outbox::{DbContext as _, Operation, Outbox, Result},
    record::OutboxEvent,
    runtime::signals::Signal,
    store::{Database, NewRecord},
    telemetry::trace::{self, PublishOutcome},
};

impl<Db: Database> Outbox<Db> {
    /// Writes the event in the caller's transaction. The event is delivered if and only if that
    /// transaction commits.
    ///
    /// Pass the connection or transaction that writes the business rows:
    /// `outbox.publish(&mut tx, &event)`.
    ///
    /// # Errors
    /// If the event is not valid or too large, before any SQL; or if the database fails.
    pub async fn publish<E: OutboxEvent>(
        &self,
        connection: &mut Db::Connection,
        event: &E,
    ) -> Result<()> {
        self.schedule(event).send(connection).await.map(|_| ())
    }

    /// Writes all events with one statement, in their order.
    ///
    /// # Errors
    /// If one of them is not valid or too large, before any SQL; or if the database fails.
    pub async fn publish_all<E: OutboxEvent>(
        &self,
        connection: &mut Db::Connection,
        events: &[E],
    ) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let span = trace::publish(E::NAME, events.len());
        let write = async {
            let shared = &self.inner;
            let trace = trace::trace_headers();
            let records = events
                .iter()
                .map(|event| self.schedule(event).checked(&trace));
            let records = records.collect::<Result<Vec<_>>>()?;
            let partitions = shared.partitions(connection, Operation::Publish).await?;
            let records = records.into_iter().map(|record| record(partitions));
            let records: Vec<NewRecord> = records.collect();
            let inserted = Db::insert_all(connection, &shared.sql, &records).await;
            inserted.during(Operation::Publish)?;
            #[cfg(feature = "testing")]
            shared.stamp(connection, &records).await?;
            // The caller commits later. The event loop's `on_signals` picks this signal up and polls
            // until it finds the records.
            shared.signals.raise(Signal::Published);
            Ok(())
        };
        let result: Result<()> = write.instrument(span.clone()).await;
        let outcome = match result {
            Ok(()) => PublishOutcome::Published,
            Err(_) => PublishOutcome::Failed,
        };
        trace::published(&span, outcome);
        result
    }
}
