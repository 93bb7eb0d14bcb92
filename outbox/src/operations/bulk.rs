//! Changes of many, one short transaction at a time.

use std::time::Duration;

use super::{
    DeliveryStatus, Filter, Operations, RecordStatus, Status,
    step::{Batches, Step},
};
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    store::{Database, Fence, Prunable, micros},
};

/// How many records pruning looks at, and deletes at most, in one transaction.
const BATCH: i64 = 1000;

impl<'a, Db: Database> Operations<'a, Db> {
    /// [`replay_all`](Self::replay_all), for those who want to see it progress or to be able to
    /// stop it.
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

    /// [`discard_all`](Self::discard_all), for those who want to see it progress or to be able to
    /// stop it.
    pub fn discarding(&self, filter: &Filter) -> Bulk<'a, Db> {
        Bulk::new(*self, Verb::Discard, filter)
    }

    /// [`prune`](Self::prune), for those who want to see it progress or to be able to stop it.
    pub fn pruning(&self, older_than: Duration) -> Pruning<'a, Db> {
        Pruning {
            operations: *self,
            micros: micros(older_than),
            after: Some(0),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Replay,
    Discard,
}

/// What a batch consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Deliveries,
    Records,
    /// Of what has this status, nothing can be changed.
    Nothing,
}

/// Replays or discards many. Stopped between two calls of [`next`](Self::next), or in the middle of
/// one, it has changed a part and nothing by halves.
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

    /// This many in one transaction, of 1 to 1,000; 500 by default. To be said before the first.
    pub fn batch_size(mut self, size: u32) -> Self {
        self.batches = self.batches.of_size(size);
        self
    }

    /// Changes the next batch. How many that were; `None` when nothing is left of what was there at
    /// the first call.
    ///
    /// # Errors
    /// When the database fails. What was changed before stays so.
    pub async fn next(&mut self) -> Result<Option<u64>> {
        if self.of == Of::Nothing {
            return Ok(None);
        }
        let Some(batch) = self.batches.next(&self.operations).await? else {
            return Ok(None);
        };
        let step = match (self.verb, self.of) {
            (Verb::Replay, Of::Deliveries) => Step::Replay(&batch.deliveries),
            (Verb::Replay, _) => Step::BringForward(&batch.records),
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
    /// Without a status, the safe one: what waits for a person.
    fn or_failed(&self) -> Self {
        let filter = self.clone();
        match filter.status {
            Some(_) => filter,
            None => filter.status(DeliveryStatus::Failed),
        }
    }
}

/// Deletes what was finished long ago.
#[derive(Debug)]
#[must_use = "nothing is deleted until `next` is called"]
pub struct Pruning<'a, Db: Database> {
    operations: Operations<'a, Db>,
    micros: i64,
    /// The last that was looked at; none at the end.
    after: Option<i64>,
}

impl<Db: Database> Pruning<'_, Db> {
    /// Looks at the next thousand records and deletes those that are over. How many that were;
    /// `None` when there are no more to look at.
    ///
    /// # Errors
    /// When the database fails. What was deleted before stays so.
    pub async fn next(&mut self) -> Result<Option<u64>> {
        self.next_within(None).await
    }

    /// The ids that [`next`](Self::next) would have deleted. Nothing is deleted.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn skip(&mut self) -> Result<Option<Vec<i64>>> {
        let over = self.look().await?;
        Ok(over.map(|over| over.iter().map(|one| one.id).collect()))
    }

    /// With a fence: of partitions that are held only.
    pub(super) async fn next_within(&mut self, fence: Option<&Fence>) -> Result<Option<u64>> {
        let ours = |part: u16| {
            fence.is_none_or(|fence| fence.leases.iter().any(|lease| lease.part == part))
        };
        let Some(mut over) = self.look().await? else {
            return Ok(None);
        };
        over.retain(|one| ours(one.part));
        if over.is_empty() {
            return Ok(Some(0));
        }
        let deleted = self.operations.apply(Step::Delete(&over, fence)).await?;
        Ok(Some(deleted))
    }

    /// Those of the next records that are over.
    async fn look(&mut self) -> Result<Option<Vec<Prunable>>> {
        let Some(after) = self.after else {
            return Ok(None);
        };
        let operation = Operation::Prune;
        let mut connection = self.operations.connection(operation).await?;
        let names = self.operations.names();
        let mut looked_at = Db::prunable(&mut connection, names, after, self.micros, BATCH)
            .await
            .during(operation)?;
        // Ids are in the order of publishing: after a thousand that are too young there is
        // nothing old, and the rest of the table need not be read.
        let goes_on = !looked_at.iter().all(|one| one.young);
        let last = looked_at.last().map(|one| one.id);
        self.after = last.filter(|_| goes_on);
        looked_at.retain(|one| one.over);
        Ok(last.map(|_| looked_at))
    }
}
