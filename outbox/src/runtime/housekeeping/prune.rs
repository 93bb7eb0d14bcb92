//! Removes finished records, old commands and old messages.                                  (I/O)

use std::{sync::Arc, time::Duration};

use crate::{
    config::Retention,
    outbox::{Outbox, Result, error::Operation},
    runtime::meters::database_error,
    store::{Database, Fence},
};

pub(super) const EVERY: Duration = Duration::from_secs(60);

/// Removes all rows that are older than their retention. After an error the next run continues.
pub(super) async fn prune<Db: Database>(outbox: Outbox<Db>, fence: Arc<Fence>) {
    let (records, others) = tokio::join!(
        prune_records(&outbox, &fence),
        prune_commands_and_messages(&outbox)
    );
    for error in [records.err(), others.err()].into_iter().flatten() {
        database_error(Operation::Prune);
        let (operation, error) = (Operation::Prune.as_str(), anyhow::Error::from(error));
        tracing::warn!(
            operation,
            error = format!("{error:#}"),
            "database error; retrying in a minute"
        );
    }
}

/// Removes finished records. Each process removes those of its own partitions.
async fn prune_records<Db: Database>(outbox: &Outbox<Db>, fence: &Fence) -> Result<()> {
    let time = match outbox.inner.config.processing.retention {
        Retention::For(time) => time,
        // Removes records that were discarded, or kept under another setting.
        Retention::Delete => Duration::ZERO,
        Retention::Forever => return Ok(()),
    };
    let (operations, within) = (outbox.operations(), (&*outbox.inner.sql, fence));
    let records = operations.prune_within(time, Some(within)).await?;
    if records > 0 {
        tracing::debug!(records, "finished records removed");
    }
    Ok(())
}

/// Removes commands and messages. Every process does this, for all of them.
async fn prune_commands_and_messages<Db: Database>(outbox: &Outbox<Db>) -> Result<()> {
    let operations = outbox.operations();
    if let Some(time) = outbox.inner.command_retention {
        operations.prune_commands(time).await?;
    }
    if let Some(time) = outbox.inner.inbox_retention {
        operations.prune_inbox(time).await?;
    }
    Ok(())
}
