//! Deleting what is finished.

use std::time::Duration;

use super::Operations;
use crate::{
    outbox::Result,
    store::{Database, Fence},
};

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

    /// With a fence: of partitions that are held only.
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
}
