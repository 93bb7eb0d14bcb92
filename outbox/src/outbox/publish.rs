//! Publishing: from an event to a record in the caller's transaction.

use tracing::Instrument as _;

use crate::{
    outbox::{
        Outbox, Result, Schedule,
        error::{DbContext as _, Operation},
    },
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
        let write = self.write_all(connection, events);
        let result = write.instrument(span.clone()).await;
        let outcome = match result {
            Ok(()) => PublishOutcome::Published,
            Err(_) => PublishOutcome::Failed,
        };
        trace::published(&span, outcome);
        result
    }

    /// [`publish_all`](Self::publish_all) inside its span.
    async fn write_all<E: OutboxEvent>(
        &self,
        connection: &mut Db::Connection,
        events: &[E],
    ) -> Result<()> {
        let shared = &self.inner;
        let trace = trace::trace_headers();
        let records = events
            .iter()
            .map(|event| self.schedule(event).into_record(&trace))
            .collect::<Result<Vec<NewRecord>>>()?;
        Db::insert_all(connection, &shared.sql, &records)
            .await
            .during(Operation::Publish)?;
        shared
            .stamp(connection, &records)
            .await
            .during(Operation::Publish)?;
        // The caller commits later. The event loop's `on_signals` picks this signal up and polls
        // until it finds the records.
        shared.signals.raise(Signal::Published);
        Ok(())
    }

    /// Like [`publish`](Self::publish), with options: key, due time, dedup key, headers, retries.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use outbox::{Database, Outbox, OutboxEvent, Scheduled};
    /// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
    /// # #[outbox_event(name = "order.created", key = order_id)]
    /// # struct OrderCreated { order_id: i64 }
    /// async fn remind(outbox: &Outbox<sqlx::Sqlite>, tx: &mut sqlx::SqliteConnection) -> outbox::Result<()> {
    ///     let event = OrderCreated { order_id: 7 };
    ///     let sent = outbox
    ///         .schedule(&event)
    ///         .delay(Duration::from_secs(3600))
    ///         .dedup_key("reminder/7")
    ///         .header("tenant", "acme")
    ///         .send(tx)
    ///         .await?;
    ///     if sent == Scheduled::Duplicate {
    ///         println!("was sent before");
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[must_use = "nothing is written until `send`"]
    pub fn schedule<'a, E: OutboxEvent>(&'a self, event: &'a E) -> Schedule<'a, Db, E> {
        Schedule::new(self, event)
    }
}
