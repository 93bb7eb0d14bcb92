//! [`Settler`]: writes a batch until the database accepts it.                                 (I/O)

use std::sync::Arc;

use sqlx::Pool;

use crate::{
    outbox::error::Operation,
    runtime::backoff::DatabaseBackoff,
    store::{Batch, Database, Fence, KeptConnection, Role, SettleOutcome, Statements},
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
            connection: KeptConnection::for_role(pool, Role::Writer),
            sql,
            keep_completed,
        }
    }

    /// Tries to write a batch until it succeeds. Its records stay in memory until then, and memory
    /// is bounded. If the future is dropped, either all of the batch is written or nothing.
    pub(crate) async fn write(&mut self, fence: &Fence, batch: &Batch) -> SettleOutcome {
        let mut backoff = DatabaseBackoff::default();
        loop {
            match self.write_once(fence, batch).await {
                Ok(outcome) => {
                    backoff.recovered();
                    return outcome;
                }
                Err(error) => {
                    let delay = backoff.failed(Operation::Settle, &error);
                    tokio::time::sleep(delay).await;
                }
            }
        }
    }

    pub(crate) async fn write_once(
        &mut self,
        fence: &Fence,
        batch: &Batch,
    ) -> Result<SettleOutcome, sqlx::Error> {
        if batch.is_empty() {
            return Ok(SettleOutcome::default());
        }
        let (keep, connection) = (self.keep_completed, self.connection.connection().await?);
        let written = Db::settle(connection, &self.sql, fence, batch, keep).await;
        self.connection.release(&written);
        written
    }
}
