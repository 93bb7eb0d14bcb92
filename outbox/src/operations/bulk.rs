//! [`Bulk`]: replays or discards many, one short transaction at a time.

use super::{
    DeliveryStatus, Filter, Operations, RecordStatus, Status,
    step::{Batches, Step},
};
use crate::{outbox::Result, store::Database};

impl<'a, Db: Database> Operations<'a, Db> {
    /// [`replay_all`](Self::replay_all) for a caller that shows progress or may stop early.
    ///
    /// ```
    /// # use outbox::{Outbox, Result, operations::Filter};
    /// async fn replay(outbox: &Outbox<sqlx::Sqlite>) -> Result<()> {
    ///     let mut bulk = outbox.operations().replaying(&Filter::new().handler("charge-card"));
    ///     while let Some(changed) = bulk.next().await? {
    ///         println!("{changed} more");
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn replaying(&self, filter: &Filter) -> Bulk<'a, Db> {
        Bulk::new(*self, Verb::Replay, filter)
    }

    /// [`discard_all`](Self::discard_all) for a caller that shows progress or may stop early.
    pub fn discarding(&self, filter: &Filter) -> Bulk<'a, Db> {
        Bulk::new(*self, Verb::Discard, filter)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Replay,
    Discard,
}

/// What a batch changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Deliveries,
    Records,
    /// The verb does not apply to this status.
    Nothing,
}

/// Replays or discards many. Each call of [`next`](Self::next) is one transaction: dropped between
/// two calls, or during one, this has changed whole batches and no part of one.
#[derive(Debug)]
#[must_use = "nothing is changed until `next` is called"]
pub struct Bulk<'a, Db: Database> {
    operations: Operations<'a, Db>,
    verb: Verb,
    of: Of,
    batches: Batches,
}

impl<'a, Db: Database> Bulk<'a, Db> {
    fn new(operations: Operations<'a, Db>, verb: Verb, filter: &Filter) -> Self {
        let filter = filter.or_failed();
        Self {
            operations,
            verb,
            of: verb.of(filter.status),
            batches: Batches::new(filter),
        }
    }

    /// How many one transaction changes, from 1 to 1,000; 500 by default. Call it before the first
    /// [`next`](Self::next).
    pub fn batch_size(mut self, size: u32) -> Self {
        self.batches = self.batches.of_size(size);
        self
    }

    /// Changes the next batch and returns how many it changed. Returns `None` when nothing is left of
    /// what was there at the first call.
    ///
    /// # Errors
    /// When the database fails. Batches that were changed before stay changed.
    pub async fn next(&mut self) -> Result<Option<u64>> {
        if self.of == Of::Nothing {
            return Ok(None);
        }
        let Some(batch) = self.batches.next(&self.operations).await? else {
            return Ok(None);
        };
        let step = match (self.verb, self.of) {
            (Verb::Replay, Of::Deliveries) => Step::Replay(&batch.deliveries),
            (Verb::Replay, _) => Step::MakeDueNow(&batch.records),
            (Verb::Discard, Of::Deliveries) => Step::Discard {
                deliveries: &batch.deliveries,
                records: &batch.records,
            },
            (Verb::Discard, _) => Step::DiscardRecords(&batch.records),
        };
        self.operations.apply(step).await.map(Some)
    }

    pub(super) async fn finish(mut self) -> Result<u64> {
        let mut all = 0;
        while let Some(changed) = self.next().await? {
            all += changed;
        }
        Ok(all)
    }
}

impl Verb {
    fn of(self, status: Option<Status>) -> Of {
        use DeliveryStatus::{Failed, Retrying, Waiting};
        use RecordStatus::{Pending, Scheduled, Unhandled};
        match (self, status) {
            (_, Some(Status::Delivery(Failed | Retrying)))
            | (Self::Discard, Some(Status::Delivery(Waiting))) => Of::Deliveries,
            (_, Some(Status::Record(Scheduled)))
            | (Self::Discard, Some(Status::Record(Pending | Unhandled))) => Of::Records,
            _ => Of::Nothing,
        }
    }
}

impl Filter {
    /// A filter without a status selects failed deliveries: only they wait for a person.
    fn or_failed(&self) -> Self {
        let filter = self.clone();
        match filter.status {
            Some(_) => filter,
            None => filter.status(DeliveryStatus::Failed),
        }
    }
}
