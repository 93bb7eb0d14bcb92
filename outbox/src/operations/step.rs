//! [`Step`]: one change as one short transaction.

use super::Operations;
use crate::{
    outbox::error::{DbContext as _, Operation, Result},
    runtime::signals::Signal,
    store::{Database, Fence, Prunable, Statements},
};

/// How often a transaction that ends in a deadlock is tried.
const MAX_TRIES: u32 = 5;

/// A change that an operator makes to records and deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// Makes them due now.
    Replay,
    /// Discards them.
    Discard,
}

/// Ids that one transaction changes.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Empty if the operator selected records.
    pub(super) deliveries: Vec<i64>,
    /// The selected records, or the records of the deliveries.
    pub(super) records: Vec<i64>,
}

/// The change of one transaction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    /// Replays or discards deliveries. A record whose last unfinished delivery is discarded is
    /// discarded with it.
    Deliveries(Verb, &'a Batch),
    /// Makes scheduled records due now, or discards records that no handler has started.
    Records(Verb, &'a [i64]),
    /// Makes the heads of the lanes of these deliveries due now if they are waiting.
    ReleaseLaneHeads(&'a [i64]),
    /// Deletes these finished records. With leases, only in partitions that this process still owns.
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
    /// Runs the transaction of a step. Returns how many rows it changed.
    pub(super) async fn apply(&self, step: Step<'_>) -> Result<u64> {
        let changed = self.run_with_retries(step).await?;
        if let Step::Deliveries(Verb::Discard, batch) = step {
            // Again after the commit: two operators that discard neighbours in one lane at the same
            // time do not see each other's change, and neither releases the delivery after both.
            self.run_with_retries(Step::ReleaseLaneHeads(&batch.deliveries))
                .await?;
        }
        if changed > 0 && !matches!(step, Step::Delete(..)) {
            self.wake_dispatcher(Signal::Requested);
        }
        Ok(changed)
    }

    /// Runs the transaction. Runs it again if it ended in a deadlock.
    async fn run_with_retries(&self, step: Step<'_>) -> Result<u64> {
        let mut tries = 1;
        loop {
            match self.attempt(step).await {
                Err(error) if tries < MAX_TRIES && is_deadlock(&error) => tries += 1,
                result => return result.during(step.operation()),
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
                    let owned = Db::lock_leases(&mut tx, sql, fence).await?;
                    records.retain(|record| owned.contains(&record.partition));
                }
                let ids: Vec<i64> = records.iter().map(|record| record.id).collect();
                self.operator(&mut tx).delete(&ids).await?
            }
        };
        tx.commit().await?;
        Ok(changed)
    }
}

/// Whether the database ended this transaction to resolve a conflict with another one.
fn is_deadlock(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    // 40P01: a deadlock in PostgreSQL. 40001: a deadlock in MySQL, a serialization failure in
    // PostgreSQL.
    matches!(code.as_deref(), Some("40P01" | "40001"))
}
