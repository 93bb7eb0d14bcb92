//! Changes as short transactions.

use super::{Filter, Operations, Paging};
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    runtime::signals::WakeSignals,
    store::{Database, Fence, Prunable},
};

/// How many are changed in one transaction, unless something else is said.
const BATCH: u32 = 500;
/// How often a transaction is made that stands in the way of others.
const TRIES: u32 = 5;

/// What one transaction does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    /// These deliveries, now.
    Replay(&'a [i64]),
    /// These records, now.
    BringForward(&'a [i64]),
    /// These deliveries, and those of these records that have no other.
    Discard {
        deliveries: &'a [i64],
        records: &'a [i64],
    },
    /// The lanes of these deliveries go on if nothing stands before them.
    Promote(&'a [i64]),
    /// These records, that no handler has begun with.
    DiscardRecords(&'a [i64]),
    /// These records, that are finished. With a fence, those of partitions that are still held.
    Delete(&'a [Prunable], Option<&'a Fence>),
}

impl Step<'_> {
    fn operation(self) -> Operation {
        match self {
            Self::Replay(_) | Self::BringForward(_) => Operation::Replay,
            Self::Discard { .. } | Self::Promote(_) | Self::DiscardRecords(_) => Operation::Discard,
            Self::Delete(..) => Operation::Prune,
        }
    }
}

impl<Db: Database> Operations<'_, Db> {
    /// Makes the change. How many rows it was.
    pub(super) async fn apply(&self, step: Step<'_>) -> Result<u64> {
        let changed = self.persist(step).await?;
        if let Step::Discard { deliveries, .. } = step {
            // Once more: two that discard neighbours in one lane at the same time do not see each
            // other's change before they commit, and neither promotes what comes after both.
            self.persist(Step::Promote(deliveries)).await?;
        }
        if changed > 0 && !matches!(step, Step::Delete(..)) {
            self.tell(WakeSignals::now);
        }
        Ok(changed)
    }

    /// Makes the transaction, and again if it was in the way of another one.
    async fn persist(&self, step: Step<'_>) -> Result<u64> {
        let mut tries = 1;
        loop {
            match self.attempt(step).await {
                Err(error) if tries < TRIES && in_the_way(&error) => tries += 1,
                done => return done.during(step.operation()),
            }
        }
    }

    async fn attempt(&self, step: Step<'_>) -> Result<u64, sqlx::Error> {
        let names = self.names();
        // Dropped before its commit, all of it is undone.
        let mut tx = self.pool.begin_with(Db::BEGIN).await?;
        let changed = match step {
            Step::Replay(deliveries) => Db::replay(&mut tx, names, deliveries).await?,
            Step::BringForward(records) => Db::bring_forward(&mut tx, names, records).await?,
            Step::Discard {
                deliveries,
                records,
            } => {
                let changed = Db::discard(&mut tx, names, deliveries).await?;
                Db::end_records(&mut tx, names, records).await?;
                Db::promote(&mut tx, names, deliveries).await?;
                changed
            }
            Step::Promote(deliveries) => {
                Db::promote(&mut tx, names, deliveries).await?;
                0
            }
            Step::DiscardRecords(records) => Db::discard_records(&mut tx, names, records).await?,
            Step::Delete(records, fence) => {
                let held = match fence {
                    Some(fence) => Some(Db::lock_leases(&mut tx, names, fence).await?),
                    None => None,
                };
                let held = |part| held.as_ref().is_none_or(|held| held.contains(part));
                let records = records.iter().filter(|record| held(&record.part));
                let records: Vec<i64> = records.map(|record| record.id).collect();
                Db::delete(&mut tx, names, &records).await?
            }
        };
        tx.commit().await?;
        Ok(changed)
    }
}

/// Whether the database gave this transaction up for another one.
fn in_the_way(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    // A deadlock in PostgreSQL; in MySQL, and what cannot be put in an order in PostgreSQL.
    matches!(code.as_deref(), Some("40P01" | "40001"))
}

/// What a filter selects, in parts small enough for one transaction. Nothing is seen twice, and
/// nothing that was not there at the start: what fails anew meanwhile is left for the next time.
#[derive(Debug, Clone)]
pub(super) struct Batches {
    filter: Filter,
    paging: Paging,
    /// The last that was there at the start.
    until: Option<i64>,
}

/// A part. `deliveries` is empty where records are selected.
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

    /// This many at a time. Before the first.
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
