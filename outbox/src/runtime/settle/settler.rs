//! The task that writes what became of records.

use sqlx::Pool;

use crate::outbox::error::Operation;
use crate::{
    runtime::backoff::DatabaseBackoff,
    store::{Batch, Database, Fence, KeptConnection, TableNames},
};

/// Writes, on a connection of its own.
#[derive(Debug)]
pub(crate) struct Settler<Db: Database> {
    link: KeptConnection<Db>,
    names: TableNames,
    keep: bool,
}

impl<Db: Database> Settler<Db> {
    pub(crate) fn new(pool: Pool<Db>, names: TableNames, keep: bool) -> Self {
        Self {
            link: KeptConnection::settling(pool),
            names,
            keep,
        }
    }

    /// Writes a batch, however often it takes: the records are in memory until then, and no more
    /// of them are read than fit there. Dropped in between, nothing or all of it is written.
    pub(crate) async fn write(&mut self, fence: &Fence, batch: &Batch) {
        let mut outage = DatabaseBackoff::default();
        while let Err(error) = self.try_write(fence, batch).await {
            let wait = outage.failed(Operation::Settle, &error);
            tokio::time::sleep(wait).await;
        }
        outage.over();
    }

    /// Writes a batch once.
    pub(crate) async fn try_write(
        &mut self,
        fence: &Fence,
        batch: &Batch,
    ) -> Result<(), sqlx::Error> {
        if batch.is_empty() {
            return Ok(());
        }
        let written = match self.link.connection().await {
            Ok(connection) => Db::settle(connection, &self.names, fence, batch, self.keep).await,
            Err(error) => Err(error),
        };
        self.link.done(&written);
        written
    }
}
