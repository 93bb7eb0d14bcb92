//! Replaying, discarding, pausing and resuming; [`Change`]: the result.

use super::{
    DeliveryStatus, Filter, Operations, RecordStatus, Status,
    operations::ask,
    step::{Batch, Step, Verb},
};
use crate::{
    outbox::error::{DbContext as _, Operation, Result},
    record::LONGEST_NAME,
    runtime::signals::Signal,
    store::Database,
};

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a change that found something else did nothing"]
#[non_exhaustive]
pub enum Change {
    /// The change was made.
    Applied,
    /// There is no such record, or it has no delivery of this handler. Nothing was changed.
    NotFound,
    /// The record or delivery has this status, which the change does not apply to. Nothing was
    /// changed.
    Conflict(Status),
}

impl<Db: Database> Operations<'_, Db> {
    /// Makes the delivery of this handler due now. A failed delivery gets all its retries again. A
    /// retrying delivery does not wait for its time. Later records of the lane wait until it succeeds.
    ///
    /// [`Change::NotFound`]: no such record, or the handler never left it unfinished.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn replay(&self, record_id: i64, handler: &str) -> Result<Change> {
        self.change(Verb::Replay, record_id, handler).await
    }

    /// [Replays](Self::replay) the record for each handler whose delivery is failed or retrying. A
    /// scheduled record becomes due now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn replay_record(&self, record_id: i64) -> Result<Change> {
        self.change_record(Verb::Replay, record_id).await
    }

    /// Replays everything that the filter selects: failed or retrying deliveries, or scheduled records.
    /// Without a status it selects failed deliveries. Returns how many.
    ///
    /// Works in many short transactions. A call that is interrupted has replayed a part, and can be
    /// repeated. See [`replaying`](Self::replaying) for one transaction at a time.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn replay_all(&self, filter: &Filter) -> Result<u64> {
        self.replaying(filter).finish().await
    }

    /// Discards the delivery of this handler, so that the handler does not get the record again. The
    /// next record of the lane runs. The record is discarded when no other handler has to finish it.
    ///
    /// [`Change::NotFound`]: no such record, or the handler never left it unfinished.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn discard(&self, record_id: i64, handler: &str) -> Result<Change> {
        self.change(Verb::Discard, record_id, handler).await
    }

    /// Discards the record for every handler that has not finished it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn discard_record(&self, record_id: i64) -> Result<Change> {
        self.change_record(Verb::Discard, record_id).await
    }

    /// Discards everything that the filter selects: waiting, retrying or failed deliveries, or pending,
    /// scheduled or unhandled records. Without a status it selects failed deliveries. Returns how
    /// many.
    ///
    /// Works in many short transactions. A call that is interrupted has discarded a part, and can be
    /// repeated. See [`discarding`](Self::discarding) for one transaction at a time.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn discard_all(&self, filter: &Filter) -> Result<u64> {
        self.discarding(filter).finish().await
    }

    /// Pauses this handler in every process: it gets no records until it is
    /// [resumed](Self::resume). Its records are kept. Pausing it twice has no effect.
    ///
    /// [`Change::NotFound`]: no handler can have such an id. The handler may be part of another
    /// program, so its existence is not checked.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn pause(&self, handler: &str) -> Result<Change> {
        if handler.is_empty() || handler.len() > LONGEST_NAME || handler.contains('\0') {
            return Ok(Change::NotFound);
        }
        ask!(self, Operation::Pause, pause(handler))?;
        self.wake_dispatcher(Signal::PauseChanged);
        tracing::info!(handler, "handler paused");
        Ok(Change::Applied)
    }

    /// Ends a pause. [`Change::NotFound`]: the handler was not paused.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn resume(&self, handler: &str) -> Result<Change> {
        if handler.contains('\0') || !ask!(self, Operation::Resume, resume(handler))? {
            return Ok(Change::NotFound);
        }
        self.wake_dispatcher(Signal::PauseChanged);
        tracing::info!(handler, "handler resumed");
        Ok(Change::Applied)
    }

    /// The ids of the handlers that are paused, in order.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn paused(&self) -> Result<Vec<String>> {
        let operation = Operation::List;
        let mut handlers = ask!(self, operation, paused())?;
        handlers.sort_unstable();
        Ok(handlers)
    }

    /// Changes the record's delivery of this handler.
    async fn change(&self, verb: Verb, record_id: i64, handler: &str) -> Result<Change> {
        let found = self.deliveries_of(record_id, Some(handler)).await?;
        let Some((delivery, _)) = found.first() else {
            return Ok(match self.record_conflict(record_id).await? {
                Change::Conflict(Status::Record(RecordStatus::Split)) => Change::NotFound,
                other => other,
            });
        };
        let batch = Batch {
            deliveries: vec![*delivery],
            records: vec![record_id],
        };
        if self.apply(Step::Deliveries(verb, &batch)).await? > 0 {
            tracing::info!(record_id, handler, "delivery {}", verb.past());
            return Ok(Change::Applied);
        }
        let found = self.deliveries_of(record_id, Some(handler)).await?;
        let conflict = |(_, status): &(i64, DeliveryStatus)| Change::Conflict((*status).into());
        Ok(found.first().map_or(Change::NotFound, conflict))
    }

    /// Changes the record and all its deliveries.
    async fn change_record(&self, verb: Verb, record_id: i64) -> Result<Change> {
        // First the whole record. If a dispatcher has split it by now, its deliveries are changed.
        if self.apply(Step::Records(verb, &[record_id])).await? > 0 {
            match verb {
                Verb::Replay => tracing::info!(record_id, "record is due now"),
                Verb::Discard => tracing::info!(record_id, "record discarded"),
            }
            return Ok(Change::Applied);
        }
        let found = self.deliveries_of(record_id, None).await?;
        let batch = Batch {
            deliveries: found.iter().map(|(id, _)| *id).collect(),
            records: vec![record_id],
        };
        if !found.is_empty() && self.apply(Step::Deliveries(verb, &batch)).await? > 0 {
            tracing::info!(record_id, "deliveries of a record {}", verb.past());
            return Ok(Change::Applied);
        }
        self.record_conflict(record_id).await
    }

    /// The result for a record whose status does not allow the change.
    async fn record_conflict(&self, record_id: i64) -> Result<Change> {
        let status = ask!(self, Operation::Inspect, record_status(record_id))?;
        Ok(status.map_or(Change::NotFound, |status| Change::Conflict(status.into())))
    }

    /// Ids and statuses of the record's deliveries, of one handler or of all handlers.
    async fn deliveries_of(
        &self,
        record_id: i64,
        handler: Option<&str>,
    ) -> Result<Vec<(i64, DeliveryStatus)>> {
        if handler.is_some_and(|handler| handler.contains('\0')) {
            return Ok(Vec::new());
        }
        ask!(self, Operation::Inspect, deliveries_of(record_id, handler))
    }
}
