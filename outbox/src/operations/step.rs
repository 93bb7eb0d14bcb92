//! [`Step`]: one change as one short transaction.

use super::Operations;
use crate::{
    outbox::error::{DbContext as _, Operation, Result},
    runtime::signals::Signal,
    store::{Database, Fence, Prunable, Statements},
};

/// How often a transaction is tried that ends in a deadlock.
const TRIES: u32 = 5;

/// What an operator does to records and deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// They become due now.
    Replay,
    /// They are given up.
    Discard,
}

/// Ids that one transaction changes.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Empty where records are selected.
    pub(super) deliveries: Vec<i64>,
    /// The records, or those of the deliveries.
    pub(super) records: Vec<i64>,
}

/// What one transaction does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    /// Replays or discards deliveries. A record whose last unfinished delivery is discarded is
    /// discarded with it.
    Deliveries(Verb, &'a Batch),
    /// Makes scheduled records due now, or discards records that no handler has started with.
    Records(Verb, &'a [i64]),
    /// The heads of the lanes of these deliveries become due if they are waiting.
    ReleaseLaneHeads(&'a [i64]),
    /// Deletes these finished records. With leases, only those of partitions that are still ours.
    Delete(&'a [Prunable], Option<Within<'a>>),
}

/// The leases of this process, and the statements that lock them.
pub(crate) type Within<'a> = (&'a Statements, &'a Fence);

impl Verb {
    pub(super) fn past(self) -> &'static str {
        match self {
            Self::Replay => "replayed",
            Self::Discard => "discarded",
        }
    }
}

impl Step<'_> {
    fn operation(self) -> Operation {
        match self {
            Self::Deliveries(Verb::Replay, _) | Self::Records(Verb::Replay, _) => Operation::Replay,
            Self::Deliveries(..) | Self::Records(..) | Self::ReleaseLaneHeads(_) => {
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
        if let Step::Deliveries(Verb::Discard, batch) = step {
            // Once more, after the commit: two operators that discard neighbours in one lane at the
            // same time do not see each other's change, and neither releases the delivery after
            // both.
            self.persist(Step::ReleaseLaneHeads(&batch.deliveries))
                .await?;
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
            Step::Deliveries(Verb::Replay, batch) => operator.replay(&batch.deliveries).await?,
            Step::Deliveries(Verb::Discard, batch) => {
                let changed = operator.discard(&batch.deliveries).await?;
                operator.close_discarded(&batch.records).await?;
                operator.release_lane_heads(&batch.deliveries).await?;
                changed
            }
            Step::Records(Verb::Replay, records) => operator.make_due_now(records).await?,
            Step::Records(Verb::Discard, records) => operator.discard_records(records).await?,
            Step::ReleaseLaneHeads(deliveries) => {
                operator.release_lane_heads(deliveries).await?;
                0
            }
            Step::Delete(records, within) => {
                let mut records = records.to_vec();
                if let Some((sql, fence)) = within {
                    let held = Db::lock_leases(&mut tx, sql, fence).await?;
                    records.retain(|record| held.contains(&record.partition));
                }
                let ids: Vec<i64> = records.iter().map(|record| record.id).collect();
                self.operator(&mut tx).delete(&ids).await?
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
