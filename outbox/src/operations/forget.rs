//! Forgetting commands and messages.

use std::time::Duration;

use super::Operations;
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    store::{Database, Retained, micros},
};

/// How many are forgotten by one statement.
const BATCH: i64 = 1000;

impl<Db: Database> Operations<'_, Db> {
    /// Forgets commands that were done longer ago than this, with their results. How many. One
    /// that comes again is carried out again, so remember them for longer than anybody repeats
    /// them.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # async fn tidy_up(outbox: &outbox::Outbox<sqlx::Sqlite>) -> outbox::Result<()> {
    /// let week = Duration::from_secs(7 * 24 * 3600);
    /// let forgotten = outbox.operations().prune_commands(week).await?;
    /// # let _ = forgotten;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the database fails.
    pub async fn prune_commands(&self, older_than: Duration) -> Result<u64> {
        self.forget(Retained::Commands, older_than).await
    }

    /// Forgets messages of the [`Inbox`](crate::transaction::Inbox) that arrived longer ago than this. How
    /// many. One that arrives again is handled again.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn prune_inbox(&self, older_than: Duration) -> Result<u64> {
        self.forget(Retained::Messages, older_than).await
    }

    async fn forget(&self, what: Retained, older_than: Duration) -> Result<u64> {
        let operation = Operation::Prune;
        let mut all = 0;
        loop {
            let mut connection = self.connection(operation).await?;
            let age = micros(older_than);
            let forgotten = Db::forget(&mut connection, self.names(), what, age, BATCH)
                .await
                .during(operation)?;
            all += forgotten;
            if forgotten < BATCH.unsigned_abs() {
                return Ok(all);
            }
        }
    }
}
