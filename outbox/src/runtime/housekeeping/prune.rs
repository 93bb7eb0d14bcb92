//! Removing finished records, old commands and old messages.                                 (I/O)

use std::{sync::Arc, time::Duration};

use crate::{
    config::Retention,
    outbox::{Outbox, Result, error::Operation},
    runtime::meters::database_error,
    store::{Database, Fence},
};

pub(super) const EVERY: Duration = Duration::from_secs(60);

/// Removes everything that is older than it is to be kept. The next run removes what this one did
/// not.
pub(super) async fn prune<Db: Database>(outbox: Outbox<Db>, fence: Arc<Fence>) {
    let (pruned, forgotten) = tokio::join!(prune_records(&outbox, &fence), forget(&outbox));
    for error in [pruned.err(), forgotten.err()].into_iter().flatten() {
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
        // Records that were discarded, or kept under another setting.
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

/// Removes commands and messages. Every process does; what one has removed the others do not find.
async fn forget<Db: Database>(outbox: &Outbox<Db>) -> Result<()> {
    let operations = outbox.operations();
    if let Some(time) = outbox.inner.command_retention {
        operations.prune_commands(time).await?;
    }
    if let Some(time) = outbox.inner.inbox_retention {
        operations.prune_inbox(time).await?;
    }
    Ok(())
}
