//! [`Restore`]: puts a record into a state directly, without the attempts that lead to it.

use std::time::Duration;

use super::{Kit, KitError, error::database, manual_dispatcher::clock_offset};
use crate::{
    outbox::{
        Result,
        clock::{Clock as _, later},
    },
    record::{DeliveryStatus, failure::Failure},
    registry::PermanentFailure,
    retry::NoHandler,
    store::{Batch, DeliveryRow, FailureRow, FetchedRecord, as_micros, sqlite::testing as sql},
};

/// A state to put a record into; see [`Kit::restore`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Restore<'a> {
    /// All handlers are due now.
    Pending,
    /// All handlers are due after this time.
    Delayed(Duration),
    /// No handler took the record. If the kit has one, it runs.
    Unhandled,
    /// All handlers are done with the record.
    Completed,
    /// One handler is due as soon as no earlier record of its lane blocks it.
    Waiting {
        /// The id of the handler.
        handler: &'a str,
        /// The number of the next attempt. All attempts before it have failed.
        attempt: u32,
    },
    /// One handler is due after this time.
    Retrying {
        /// The id of the handler.
        handler: &'a str,
        /// The number of the next attempt. All attempts before it have failed.
        attempt: u32,
        /// The time until the next attempt.
        due_in: Duration,
    },
    /// One handler has failed permanently.
    Failed {
        /// The id of the handler.
        handler: &'a str,
        /// The number of the last attempt.
        attempt: u32,
        /// The text of the handler's error.
        error: &'a str,
    },
}

impl Kit {
    /// Puts a record into a state, in whatever state it was before. In a state of one handler, the
    /// record's other handlers are done with it. If the record is in the handler's lane, it keeps
    /// its position; otherwise it becomes the last of the lane.
    ///
    /// ```
    /// # use outbox::{OutboxEvent, outbox_handler, testing::{Kit, Restore, StepOutcome}};
    /// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
    /// # #[outbox_event(name = "order.created", key = order_id)]
    /// # struct OrderCreated { order_id: i64 }
    /// #[outbox_handler(id = "charge-card")] // the default policy has 3 retries
    /// async fn charge_card(event: OrderCreated) -> Result<(), &'static str> {
    ///     Err("no card")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> outbox::Result<()> {
    /// let kit = Kit::new(|builder| builder.handler::<charge_card>()).await?;
    /// let id = kit.publish(&OrderCreated { order_id: 1 }).await?;
    /// kit.restore(id, Restore::Waiting { handler: "charge-card", attempt: 4 }).await?;
    /// let last = kit.step().await?.expect("a step");
    /// assert!(matches!(last.outcome, StepOutcome::Failed { .. }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such record, no handler with this id takes it, or a transaction of the test is
    /// open.
    pub async fn restore(&self, record_id: i64, state: Restore<'_>) -> Result<()> {
        let mut dispatcher = self.dispatcher.lock().await;
        let mut connection = dispatcher.connection().await?;
        let names = &self.outbox.inner.names;
        let found = sql::record(&mut connection, names, record_id).await;
        let missing = KitError::NoSuchRecord(record_id);
        let record = found.map_err(database)?.ok_or(missing)?;
        let delivery = self.delivery_row(record, &state)?;
        let due_at = match state {
            Restore::Delayed(delay) => Some(later(self.clock.now(), delay).as_microsecond()),
            _ => None,
        };
        let keep = delivery.as_ref().map(|row| (row.handler, row.attempt));
        let reset = sql::reset(&mut connection, names, record_id, due_at, keep).await;
        reset.map_err(database)?;
        drop(connection);

        let mut batch = Batch::default();
        if let Some(row) = delivery {
            batch.split_records.push(record_id);
            batch.failures.extend(failure_row(&row));
            batch.new_deliveries.push(row.clone());
            batch.changed_deliveries.push(row);
        } else if state == Restore::Unhandled {
            batch.unhandled.push(record_id);
        } else if state == Restore::Completed {
            batch.completed.push(record_id);
        } else {
            return Ok(());
        }
        let run = dispatcher.run().await?;
        let (fence, offset) = (run.fence(), clock_offset(&self.clock));
        batch.shift_due(offset);
        run.dispatcher.write(&fence, &batch, offset).await
    }

    /// The delivery in a state of one handler.
    fn delivery_row(
        &self,
        FetchedRecord { partition, record }: FetchedRecord,
        state: &Restore<'_>,
    ) -> Result<Option<DeliveryRow>> {
        use DeliveryStatus::{Failed, Retrying, Waiting};
        let (status, handler, attempt, due_in, error) = match *state {
            Restore::Waiting { handler, attempt } => (Waiting, handler, attempt, None, None),
            Restore::Retrying {
                handler,
                attempt,
                due_in,
            } => (Retrying, handler, attempt, Some(as_micros(due_in)), None),
            Restore::Failed {
                handler,
                attempt,
                error,
            } => (Failed, handler, attempt, None, Some(error)),
            Restore::Pending | Restore::Delayed(_) | Restore::Unhandled | Restore::Completed => {
                return Ok(None);
            }
        };
        let inner = &self.outbox.inner;
        let mut takers = inner.registry.route(&record.event);
        let entry = takers.find(|entry| entry.id() == handler).ok_or_else(|| {
            KitError::from(NoHandler {
                handler: Some(handler.to_owned()),
                ..inner.registry.no_handler(&record.event)
            })
        })?;
        let stop_on_failure = inner.config.processing.stop_on_first_failure;
        let skips_failed = entry.on_permanent_failure() == PermanentFailure::Skip;
        let failed = error.map(|error| Failure::of(handler, &error.to_owned().into()));
        let (now, attempt) = (self.clock.now().as_microsecond(), attempt.max(1));
        Ok(Some(DeliveryRow {
            record_id: record.id,
            partition,
            key: record.key,
            handler: entry.id(),
            status,
            blocking: status == Waiting || stop_on_failure && !(status == Failed && skips_failed),
            attempt,
            failure_count: attempt - 1,
            first_failed_at: (attempt > 1).then_some(now),
            due_in,
            expected_attempt: attempt,
            error: failed.as_ref().map(|failure| failure.text.clone()),
            error_kind: failed.as_ref().map(|failure| failure.kind.name()),
            fingerprint: failed.map(|failure| failure.fingerprint),
        }))
    }
}

fn failure_row(row: &DeliveryRow) -> Option<FailureRow> {
    Some(FailureRow {
        record_id: row.record_id,
        partition: row.partition,
        handler: row.handler,
        attempt: row.attempt,
        kind: row.error_kind?,
        fingerprint: row.fingerprint.clone()?,
        error: row.error.clone()?,
    })
}
