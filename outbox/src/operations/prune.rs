//! Deletes finished records, and old commands and messages.

use std::time::Duration;

use super::{
    Operations,
    operations::ask,
    step::{Step, Within},
};
use crate::{
    outbox::error::{DbContext as _, Operation, Result},
    store::{Database, Prunable, Retained, as_micros},
};

/// The number of records that one transaction reads, and the largest number of commands or messages
/// that one statement deletes.
const BATCH: i64 = 1000;

impl<'a, Db: Database> Operations<'a, Db> {
    /// Deletes records that were completed or discarded longer ago than this, with their
    /// deliveries and failures. Returns how many records. Their dedup keys can be used again.
    ///
    /// Works in many short transactions. A call that is interrupted has deleted a part, and can be
    /// repeated. Unfinished records are never deleted. See [`pruning`](Self::pruning) for one
    /// transaction at a time.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use outbox::{Outbox, Result};
    /// async fn tidy_up(outbox: &Outbox<sqlx::Sqlite>) -> Result<()> {
    ///     let week = Duration::from_secs(7 * 24 * 3600);
    ///     let deleted = outbox.operations().prune(week).await?;
    ///     println!("{deleted} records were finished more than a week ago");
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// When the database fails.
    pub async fn prune(&self, older_than: Duration) -> Result<u64> {
        self.prune_within(older_than, None).await
    }

    /// [`prune`](Self::prune) for a caller that shows progress or may stop early.
    pub fn pruning(&self, older_than: Duration) -> Pruning<'a, Db> {
        Pruning {
            operations: *self,
            age_micros: as_micros(older_than),
            after: Some(0),
            within: None,
        }
    }

    /// The same, with `within` only for records in partitions that this process still owns.
    pub(crate) async fn prune_within(
        &self,
        older_than: Duration,
        within: Option<Within<'a>>,
    ) -> Result<u64> {
        let (mut pruning, mut deleted) = (self.pruning(older_than), 0);
        pruning.within = within;
        while let Some(count) = pruning.next().await? {
            deleted += count;
        }
        Ok(deleted)
    }

    /// Deletes commands that ran longer ago than this, with their results. Returns how many. A deleted
    /// command that comes again runs again, so keep commands for longer than any client repeats them.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # async fn prune(outbox: &outbox::Outbox<sqlx::Sqlite>) -> outbox::Result<()> {
    /// let week = Duration::from_secs(7 * 24 * 3600);
    /// let deleted = outbox.operations().prune_commands(week).await?;
    /// # let _ = deleted;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the database fails.
    pub async fn prune_commands(&self, older_than: Duration) -> Result<u64> {
        self.prune_retained(Retained::Commands, older_than).await
    }

    /// Deletes messages of the [`Inbox`](crate::transaction::Inbox) that arrived longer ago than this.
    /// Returns how many. A deleted message that arrives again is handled again.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn prune_inbox(&self, older_than: Duration) -> Result<u64> {
        self.prune_retained(Retained::Messages, older_than).await
    }

    async fn prune_retained(&self, kind: Retained, older_than: Duration) -> Result<u64> {
        let (age, mut all) = (as_micros(older_than), 0);
        loop {
            let deleted = ask!(self, Operation::Prune, prune_retained(kind, age, BATCH))?;
            all += deleted;
            if deleted < BATCH.unsigned_abs() {
                return Ok(all);
            }
        }
    }
}

/// Deletes records that finished long ago; see [`Operations::pruning`].
#[derive(Debug)]
#[must_use = "nothing is deleted until `next` is called"]
pub struct Pruning<'a, Db: Database> {
    operations: Operations<'a, Db>,
    /// The age in microseconds from which on records are deleted.
    age_micros: i64,
    /// The id of the last record that was read. `None` at the end.
    after: Option<i64>,
    /// Only records of these partitions, as long as this process owns them.
    within: Option<Within<'a>>,
}

impl<Db: Database> Pruning<'_, Db> {
    /// Reads the next thousand records and deletes those that finished long enough ago. Returns how
    /// many, or `None` when there are no more records to read.
    ///
    /// # Errors
    /// When the database fails. Records that were deleted before stay deleted.
    pub async fn next(&mut self) -> Result<Option<u64>> {
        let Some(mut over) = self.read_next().await? else {
            return Ok(None);
        };
        if let Some((_, fence)) = self.within {
            over.retain(|one| {
                fence
                    .leases
                    .iter()
                    .any(|lease| lease.partition == one.partition)
            });
        }
        if over.is_empty() {
            return Ok(Some(0));
        }
        let step = Step::Delete(&over, self.within);
        self.operations.apply(step).await.map(Some)
    }

    /// Returns the ids that [`next`](Self::next) would delete. Deletes nothing.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn skip(&mut self) -> Result<Option<Vec<i64>>> {
        let over = self.read_next().await?;
        Ok(over.map(|over| over.iter().map(|one| one.id).collect()))
    }

    /// Reads the next [`BATCH`] records, and returns those that are over.
    async fn read_next(&mut self) -> Result<Option<Vec<Prunable>>> {
        let Some(after) = self.after else {
            return Ok(None);
        };
        let (operations, age) = (self.operations, self.age_micros);
        let mut records = ask!(operations, Operation::Prune, prunable(after, age, BATCH))?;
        // Ids are in the order of publishing: after a thousand recent records there is no old record,
        // so the rest of the table need not be read.
        let has_more = !records.iter().all(|one| one.is_recent);
        let last = records.last().map(|one| one.id);
        self.after = last.filter(|_| has_more);
        records.retain(|one| one.is_over);
        Ok(last.map(|_| records))
    }
}
