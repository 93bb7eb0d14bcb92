//! Deleting what is finished: records, commands, messages.

use std::time::Duration;

use super::Operations;
use crate::{
    outbox::{Result, error::While as _},
    store::{Database, Fence, Retained, micros},
};

/// How many commands or messages one statement deletes.
const BATCH: i64 = 1000;

impl<Db: Database> Operations<'_, Db> {
    /// Deletes records that were completed or discarded longer ago than this, with their
    /// deliveries and failures. How many records. Their dedup keys can be used again.
    ///
    /// Works in many short transactions. One that is interrupted has deleted a part, and can be
    /// made again. What is not finished is never touched. See [`pruning`](Self::pruning) for one
    /// at a time.
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

    /// With a fence: only records of partitions that this process still owns.
    pub(crate) async fn prune_within(
        &self,
        older_than: Duration,
        fence: Option<&Fence>,
    ) -> Result<u64> {
        let (mut pruning, mut deleted) = (self.pruning(older_than), 0);
        while let Some(now) = pruning.next_within(fence).await? {
            deleted += now;
        }
        Ok(deleted)
    }

    /// Deletes commands that were done longer ago than this, with their results. Returns how many.
    /// A command that comes again is carried out again, so keep them for longer than any client
    /// repeats a command.
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
    /// Returns how many. A message that arrives again is handled again.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn prune_inbox(&self, older_than: Duration) -> Result<u64> {
        self.prune_retained(Retained::Messages, older_than).await
    }

    async fn prune_retained(&self, what: Retained, older_than: Duration) -> Result<u64> {
        let doing = "forgetting commands and messages";
        let mut all = 0;
        loop {
            let mut connection = self.connection(doing).await?;
            let age = micros(older_than);
            let deleted = self
                .operator(&mut connection)
                .prune_retained(what, age, BATCH)
                .await
                .doing(doing)?;
            all += deleted;
            if deleted < BATCH.unsigned_abs() {
                return Ok(all);
            }
        }
    }
}
