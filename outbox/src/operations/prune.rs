//! Deleting what is finished.

use std::time::Duration;

use super::{Operations, step::Step};
use crate::{
    Database, Result,
    error::While as _,
    store::{Fence, Prunable, micros},
};

/// How many records are looked at, and deleted at most, in one transaction.
const BATCH: i64 = 1000;

impl<Db: Database> Operations<'_, Db> {
    /// Deletes records that were completed or discarded longer ago than this, with their
    /// deliveries and failures. How many records. Their dedup keys can be used again.
    ///
    /// Works in many short transactions. One that is interrupted has deleted a part, and can be
    /// made again. What is not finished is never touched.
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
        let ours = |part: u16| {
            fence.is_none_or(|fence| fence.leases.iter().any(|lease| lease.part == part))
        };
        let doing = "looking for finished records";
        let (age, mut after, mut deleted) = (micros(older_than), 0, 0);
        loop {
            let mut connection = self.connection(doing).await?;
            let looked_at = Db::prunable(&mut connection, self.names(), after, age, BATCH)
                .await
                .doing(doing)?;
            drop(connection);
            let over = looked_at.iter().filter(|one| one.over && ours(one.part));
            let over: Vec<Prunable> = over.copied().collect();
            if !over.is_empty() {
                deleted += self.apply(Step::Delete(&over, fence)).await?;
            }
            // Ids are in the order of publishing: after a thousand that are too young there is
            // nothing old, and the rest of the table need not be read.
            let Some(last) = looked_at.last() else {
                return Ok(deleted);
            };
            if looked_at.iter().all(|one| one.young) {
                return Ok(deleted);
            }
            after = last.id;
        }
    }
}
