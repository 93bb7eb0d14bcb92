//! Replaying, discarding, pausing and resuming; [`Change`]: the result.

use super::{DeliveryStatus, Filter, Operations, RecordStatus, Status, step::Step};
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
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
    /// There is no such record, or nothing in it for this handler. Nothing was changed.
    NotFound,
    /// The record or delivery has this status, which the change does not apply to. Nothing was
    /// changed.
    Conflict(Status),
}

impl<Db: Database> Operations<'_, Db> {
    /// Gives the record to this handler again, now: a failed delivery with all its retries, a
    /// retrying one before its time. The records behind it wait until it succeeds.
    ///
    /// [`Change::NotFound`]: no such record, or the handler never left it unfinished.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn replay(&self, record_id: i64, handler: &str) -> Result<Change> {
        let found = self.deliveries_of(record_id, Some(handler)).await?;
        let Some((delivery, _)) = found.first() else {
            return self.no_delivery(record_id).await;
        };
        if self.apply(Step::Replay(&[*delivery])).await? > 0 {
            tracing::info!(record_id, handler, "delivery replayed");
            return Ok(Change::Applied);
        }
        self.conflict(record_id, handler).await
    }

    /// [Replays](Self::replay) the record for each handler whose delivery is failed or retrying. A
    /// scheduled record becomes due now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn replay_record(&self, record_id: i64) -> Result<Change> {
        if self.apply(Step::MakeDueNow(&[record_id])).await? > 0 {
            tracing::info!(record_id, "record is due now");
            return Ok(Change::Applied);
        }
        let found = self.deliveries_of(record_id, None).await?;
        let ids: Vec<i64> = found.iter().map(|(id, _)| *id).collect();
        if !ids.is_empty() && self.apply(Step::Replay(&ids)).await? > 0 {
            tracing::info!(record_id, "deliveries of a record replayed");
            return Ok(Change::Applied);
        }
        self.record_conflict(record_id).await
    }

    /// Replays all that the filter selects: deliveries that are failed or retrying, or scheduled
    /// records; without a status, failed deliveries. Returns how many.
    ///
    /// Works in many short transactions. A call that is interrupted has replayed a part, and can be
    /// repeated. See [`replaying`](Self::replaying) for one transaction at a time.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn replay_all(&self, filter: &Filter) -> Result<u64> {
        let changed = self.replaying(filter).finish().await?;
        tracing::info!(changed, "replayed");
        Ok(changed)
    }

    /// Discards the record for this handler, which does not get it again. The next record of its
    /// lane runs. The record is discarded when no other handler has to finish it.
    ///
    /// [`Change::NotFound`]: no such record, or the handler never left it unfinished.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn discard(&self, record_id: i64, handler: &str) -> Result<Change> {
        let found = self.deliveries_of(record_id, Some(handler)).await?;
        let Some((delivery, _)) = found.first() else {
            return self.no_delivery(record_id).await;
        };
        let step = Step::Discard {
            deliveries: &[*delivery],
            records: &[record_id],
        };
        if self.apply(step).await? > 0 {
            tracing::info!(record_id, handler, "delivery discarded");
            return Ok(Change::Applied);
        }
        self.conflict(record_id, handler).await
    }

    /// Discards the record for every handler that has not finished it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn discard_record(&self, record_id: i64) -> Result<Change> {
        // First as a whole. A record that a dispatcher split before this statement has deliveries.
        if self.apply(Step::DiscardRecords(&[record_id])).await? > 0 {
            tracing::info!(record_id, "record discarded");
            return Ok(Change::Applied);
        }
        let found = self.deliveries_of(record_id, None).await?;
        let ids: Vec<i64> = found.iter().map(|(id, _)| *id).collect();
        let step = Step::Discard {
            deliveries: &ids,
            records: &[record_id],
        };
        if !ids.is_empty() && self.apply(step).await? > 0 {
            tracing::info!(record_id, "deliveries of a record discarded");
            return Ok(Change::Applied);
        }
        self.record_conflict(record_id).await
    }

    /// Discards all that the filter selects: deliveries that are waiting, retrying or failed, or
    /// records that are pending, scheduled or unhandled; without a status, failed deliveries.
    /// Returns how many.
    ///
    /// Works in many short transactions. A call that is interrupted has discarded a part, and can be
    /// repeated. See [`discarding`](Self::discarding) for one transaction at a time.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn discard_all(&self, filter: &Filter) -> Result<u64> {
        let changed = self.discarding(filter).finish().await?;
        tracing::info!(changed, "discarded");
        Ok(changed)
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
        let operation = Operation::Pause;
        if handler.is_empty() || handler.len() > LONGEST_NAME || handler.contains('\0') {
            return Ok(Change::NotFound);
        }
        let mut connection = self.connection(operation).await?;
        self.operator(&mut connection)
            .pause(handler)
            .await
            .during(operation)?;
        self.tell(Signal::PauseChanged);
        tracing::info!(handler, "handler paused");
        Ok(Change::Applied)
    }

    /// Ends a pause. [`Change::NotFound`]: the handler was not paused.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn resume(&self, handler: &str) -> Result<Change> {
        let operation = Operation::Resume;
        if handler.contains('\0') {
            return Ok(Change::NotFound);
        }
        let mut connection = self.connection(operation).await?;
        let was_paused = self
            .operator(&mut connection)
            .resume(handler)
            .await
            .during(operation)?;
        if !was_paused {
            return Ok(Change::NotFound);
        }
        self.tell(Signal::PauseChanged);
        tracing::info!(handler, "handler resumed");
        Ok(Change::Applied)
    }

    /// The ids of the handlers that are paused, in order.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn paused(&self) -> Result<Vec<String>> {
        let operation = Operation::List;
        let mut connection = self.connection(operation).await?;
        let mut handlers = self
            .operator(&mut connection)
            .paused()
            .await
            .during(operation)?;
        handlers.sort_unstable();
        Ok(handlers)
    }

    /// The record has no delivery of the handler that was asked for.
    async fn no_delivery(&self, record_id: i64) -> Result<Change> {
        Ok(match self.record_conflict(record_id).await? {
            Change::Conflict(Status::Record(RecordStatus::Split)) => Change::NotFound,
            other => other,
        })
    }

    /// The status that the delivery has instead.
    async fn conflict(&self, record_id: i64, handler: &str) -> Result<Change> {
        let found = self.deliveries_of(record_id, Some(handler)).await?;
        Ok(match found.first() {
            Some((_, status)) => Change::Conflict(Status::Delivery(*status)),
            None => Change::NotFound,
        })
    }

    /// The status that the record has instead.
    async fn record_conflict(&self, record_id: i64) -> Result<Change> {
        let operation = Operation::Inspect;
        let mut connection = self.connection(operation).await?;
        let status = self
            .operator(&mut connection)
            .record_status(record_id)
            .await
            .during(operation)?;
        Ok(status.map_or(Change::NotFound, |status| {
            Change::Conflict(Status::Record(status))
        }))
    }

    async fn deliveries_of(
        &self,
        record_id: i64,
        handler: Option<&str>,
    ) -> Result<Vec<(i64, DeliveryStatus)>> {
        let operation = Operation::Inspect;
        if handler.is_some_and(|handler| handler.contains('\0')) {
            return Ok(Vec::new());
        }
        let mut connection = self.connection(operation).await?;
        self.operator(&mut connection)
            .deliveries_of(record_id, handler)
            .await
            .during(operation)
    }
}
