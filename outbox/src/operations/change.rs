//! Replaying and discarding, pausing and resuming.

use super::{Change, DeliveryStatus, Filter, Operations, RecordStatus, Status, step::Step};
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    record::LONGEST_NAME,
    runtime::signals::WakeSignals,
    store::Database,
};

impl<Db: Database> Operations<'_, Db> {
    /// Gives the record to this handler again, now: a failed delivery with all its retries, one
    /// that is to be retried later without waiting. The records behind it go on waiting until it
    /// succeeds.
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
            tracing::info!(record_id, handler, "delivery is replayed");
            return Ok(Change::Applied);
        }
        self.conflict(record_id, handler).await
    }

    /// [Replays](Self::replay) the record for each handler that has failed with it or is to try it
    /// again. A record that is due at a later time is handled now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn replay_record(&self, record_id: i64) -> Result<Change> {
        if self.apply(Step::BringForward(&[record_id])).await? > 0 {
            tracing::info!(record_id, "record is brought forward");
            return Ok(Change::Applied);
        }
        let found = self.deliveries_of(record_id, None).await?;
        let ids: Vec<i64> = found.iter().map(|(id, _)| *id).collect();
        if !ids.is_empty() && self.apply(Step::Replay(&ids)).await? > 0 {
            tracing::info!(record_id, "deliveries of a record are replayed");
            return Ok(Change::Applied);
        }
        self.record_conflict(record_id).await
    }

    /// Replays all that the filter selects: deliveries that are failed or retrying, or scheduled
    /// records; without a status, failed deliveries. How many.
    ///
    /// Works in many short transactions. One that is interrupted has replayed a part, and can be
    /// made again. See [`replaying`](Self::replaying) for one at a time.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn replay_all(&self, filter: &Filter) -> Result<u64> {
        let changed = self.replaying(filter).finish().await?;
        tracing::info!(changed, "replayed");
        Ok(changed)
    }

    /// Gives the record up for this handler, which sees it no more. The next record of its lane
    /// goes on. The record is discarded when no other handler is left that has to finish it.
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
            tracing::info!(record_id, handler, "delivery is discarded");
            return Ok(Change::Applied);
        }
        self.conflict(record_id, handler).await
    }

    /// Gives the record up for every handler that has not finished with it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn discard_record(&self, record_id: i64) -> Result<Change> {
        // First as a whole: what is split by then has its deliveries.
        if self.apply(Step::DiscardRecords(&[record_id])).await? > 0 {
            tracing::info!(record_id, "record is discarded");
            return Ok(Change::Applied);
        }
        let found = self.deliveries_of(record_id, None).await?;
        let ids: Vec<i64> = found.iter().map(|(id, _)| *id).collect();
        let step = Step::Discard {
            deliveries: &ids,
            records: &[record_id],
        };
        if !ids.is_empty() && self.apply(step).await? > 0 {
            tracing::info!(record_id, "deliveries of a record are discarded");
            return Ok(Change::Applied);
        }
        self.record_conflict(record_id).await
    }

    /// Discards all that the filter selects: deliveries that are waiting, retrying or failed, or
    /// records that are pending, scheduled or unhandled; without a status, failed deliveries. How
    /// many.
    ///
    /// Works in many short transactions. One that is interrupted has discarded a part, and can be
    /// made again. See [`discarding`](Self::discarding) for one at a time.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn discard_all(&self, filter: &Filter) -> Result<u64> {
        let changed = self.discarding(filter).finish().await?;
        tracing::info!(changed, "discarded");
        Ok(changed)
    }

    /// Gives nothing to this handler until it is [resumed](Self::resume), in every process. Its
    /// records are kept. A handler that is paused already stays so.
    ///
    /// [`Change::NotFound`]: no handler can have such an id. Whether one has it is not known here:
    /// it may be in another program.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn pause(&self, handler: &str) -> Result<Change> {
        let operation = Operation::Pause;
        if handler.is_empty() || handler.len() > LONGEST_NAME || handler.contains('\0') {
            return Ok(Change::NotFound);
        }
        let mut connection = self.connection(operation).await?;
        Db::pause(&mut connection, self.names(), handler)
            .await
            .during(operation)?;
        self.tell(WakeSignals::paused);
        tracing::info!(handler, "handler is paused");
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
        let was_paused = Db::resume(&mut connection, self.names(), handler)
            .await
            .during(operation)?;
        if !was_paused {
            return Ok(Change::NotFound);
        }
        self.tell(WakeSignals::paused);
        tracing::info!(handler, "handler is resumed");
        Ok(Change::Applied)
    }

    /// The record has no delivery of the handler that was asked for.
    async fn no_delivery(&self, record_id: i64) -> Result<Change> {
        Ok(match self.record_conflict(record_id).await? {
            Change::Conflict(Status::Record(RecordStatus::Split)) => Change::NotFound,
            other => other,
        })
    }

    /// What the delivery is instead.
    async fn conflict(&self, record_id: i64, handler: &str) -> Result<Change> {
        let found = self.deliveries_of(record_id, Some(handler)).await?;
        Ok(match found.first() {
            Some((_, status)) => Change::Conflict(Status::Delivery(*status)),
            None => Change::NotFound,
        })
    }

    /// What the record is instead.
    async fn record_conflict(&self, record_id: i64) -> Result<Change> {
        let operation = Operation::Inspect;
        let mut connection = self.connection(operation).await?;
        let status = Db::record_status(&mut connection, self.names(), record_id)
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
        Db::deliveries_of(&mut connection, self.names(), record_id, handler)
            .await
            .during(operation)
    }
}
