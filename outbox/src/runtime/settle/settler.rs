//! [`Settler`]: writes a batch until the database takes it.                                  (I/O)

use std::sync::Arc;

use sqlx::Pool;

use crate::{
    outbox::error::Operation,
    runtime::backoff::DatabaseBackoff,
    store::{Batch, Database, Fence, KeptConnection, Statements},
};

/// Writes batches, on a connection of its own.
#[derive(Debug)]
pub(crate) struct Settler<Db: Database> {
    connection: KeptConnection<Db>,
    sql: Arc<Statements>,
    keep_completed: bool,
}

impl<Db: Database> Settler<Db> {
    pub(crate) fn new(pool: Pool<Db>, sql: Arc<Statements>, keep_completed: bool) -> Self {
        Self {
            connection: KeptConnection::settling(pool),
            sql,
            keep_completed,
        }
    }

    /// Writes a batch however often it takes. Its records are in memory until then, and memory is
    /// bounded, so nothing piles up. Dropped in between, all of it is written or nothing.
    pub(crate) async fn write(&mut self, fence: &Fence, batch: &Batch) {
        let mut backoff = DatabaseBackoff::default();
        while let Err(error) = self.write_once(fence, batch).await {
            let delay = backoff.failed(Operation::Settle, &error);
            tokio::time::sleep(delay).await;
        }
        backoff.recovered();
    }

    pub(crate) async fn write_once(
        &mut self,
        fence: &Fence,
        batch: &Batch,
    ) -> Result<(), sqlx::Error> {
        if batch.is_empty() {
            return Ok(());
        }
        let (keep, connection) = (self.keep_completed, self.connection.connection().await?);
        let written = Db::settle(connection, &self.sql, fence, batch, keep).await;
        self.connection.done(&written);
        written
    }
}
