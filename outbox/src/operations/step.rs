//! [`Step`]: one change as one short transaction. [`Batches`]: what a filter selects, in parts.

use super::{Filter, Operations, Paging};
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    runtime::signals::Signal,
    store::{Database, Fence, Prunable, Statements},
};

/// How many records or deliveries one transaction changes by default.
const BATCH: u32 = 500;
/// How often a transaction is tried that ends in a deadlock.
const TRIES: u32 = 5;

/// What one transaction does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    /// These deliveries become due now.
    Replay(&'a [i64]),
    /// These records become due now.
    MakeDueNow(&'a [i64]),
    /// Discards these deliveries, and those of these records that have no unfinished one left.
    Discard {
        deliveries: &'a [i64],
        records: &'a [i64],
    },
    /// The heads of the lanes of these deliveries become due if they are waiting.
    ReleaseLaneHeads(&'a [i64]),
    /// Discards these records, which no handler has started with.
    DiscardRecords(&'a [i64]),
    /// Deletes these finished records. With leases, only those of partitions that are still ours.
    Delete(&'a [Prunable], Option<Within<'a>>),
}

/// The leases of this process, and the statements that lock them.
pub(crate) type Within<'a> = (&'a Statements, &'a Fence);

impl Step<'_> {
    fn operation(self) -> Operation {
        match self {
            Self::Replay(_) | Self::MakeDueNow(_) => Operation::Replay,
            Self::Discard { .. } | Self::ReleaseLaneHeads(_) | Self::DiscardRecords(_) => {
                Operation::Discard
            }
            Self::Delete(..) => Operation::Prune,
        }
    }
}

impl<Db: Database> Operations<'_, Db> {
    /// Makes the change. Returns how many rows it changed.
    pub(super) async fn apply(&self, step: Step<'_>) -> Result<u64> {
        let changed = self.persist(step).await?;
        if let Step::Discard { deliveries, .. } = step {
            // Once more, after the commit: two operators that discard neighbours in one lane at the
            // same time do not see each other's change, and neither releases the delivery after
            // both.
            self.persist(Step::ReleaseLaneHeads(deliveries)).await?;
        }
        if changed > 0 && !matches!(step, Step::Delete(..)) {
            self.tell(Signal::Requested);
        }
        Ok(changed)
    }

    /// Runs the transaction, and again if the database ended it because of another one.
    async fn persist(&self, step: Step<'_>) -> Result<u64> {
        let mut tries = 1;
        loop {
            match self.attempt(step).await {
                Err(error) if tries < TRIES && is_deadlock(&error) => tries += 1,
                done => return done.during(step.operation()),
            }
        }
    }

    async fn attempt(&self, step: Step<'_>) -> Result<u64, sqlx::Error> {
        // A transaction that is dropped before its commit is rolled back.
        let mut tx = self.pool.begin_with(Db::BEGIN).await?;
        let mut operator = self.operator(&mut tx);
        let changed = match step {
            Step::Replay(deliveries) => operator.replay(deliveries).await?,
            Step::MakeDueNow(records) => operator.make_due_now(records).await?,
            Step::Discard {
                deliveries,
                records,
            } => {
                let changed = operator.discard(deliveries).await?;
                operator.close_discarded(records).await?;
                operator.release_lane_heads(deliveries).await?;
                changed
            }
            Step::ReleaseLaneHeads(deliveries) => {
                operator.release_lane_heads(deliveries).await?;
                0
            }
            Step::DiscardRecords(records) => operator.discard_records(records).await?,
            Step::Delete(records, within) => {
                let held = match within {
                    Some((sql, fence)) => Some(Db::lock_leases(&mut tx, sql, fence).await?),
                    None => None,
                };
                let held = |part| held.as_ref().is_none_or(|held| held.contains(part));
                let records = records.iter().filter(|record| held(&record.partition));
                let records: Vec<i64> = records.map(|record| record.id).collect();
                self.operator(&mut tx).delete(&records).await?
            }
        };
        tx.commit().await?;
        Ok(changed)
    }
}

/// Whether the database ended this transaction in favour of another one.
fn is_deadlock(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    // 40P01: a deadlock in PostgreSQL. 40001: a deadlock in MySQL, a serialization failure in
    // PostgreSQL.
    matches!(code.as_deref(), Some("40P01" | "40001"))
}

/// What a filter selects, in parts small enough for one transaction. Nothing is read twice.
/// Deliveries that fail again after the start are left for the next call.
#[derive(Debug, Clone)]
pub(super) struct Batches {
    filter: Filter,
    paging: Paging,
    /// The highest id that the filter selected at the start.
    until: Option<i64>,
}

/// One part. `deliveries` is empty where records are selected.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) deliveries: Vec<i64>,
    pub(super) records: Vec<i64>,
}

impl Batches {
    pub(super) fn new(filter: Filter) -> Self {
        Self {
            filter,
            paging: Paging::oldest(BATCH),
            until: None,
        }
    }

    /// The size of a part, to be set before the first.
    pub(super) fn of_size(mut self, size: u32) -> Self {
        self.paging = Paging::oldest(size);
        self
    }

    pub(super) async fn next<Db: Database>(
        &mut self,
        operations: &Operations<'_, Db>,
    ) -> Result<Option<Batch>> {
        let until = match self.until {
            Some(until) => until,
            None => {
                let newest = operations
                    .select(&self.filter, Paging::newest(1), 1)
                    .await?;
                newest.first().map_or(0, |item| item.cursor().0)
            }
        };
        self.until = Some(until);
        let (paging, size) = (self.paging, self.paging.limit);
        let items = operations.select(&self.filter, paging, size).await?;
        let mut batch = Batch::default();
        for item in items.iter().filter(|item| item.cursor().0 <= until) {
            self.paging = self.paging.after(item.cursor());
            batch.records.push(item.record_id);
            batch
                .deliveries
                .extend(item.delivery.as_ref().map(|delivery| delivery.id));
        }
        Ok((!batch.records.is_empty()).then_some(batch))
    }
}
