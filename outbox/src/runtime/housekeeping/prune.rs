//! Removing finished records, old commands and old messages.                                 (I/O)

use std::{sync::Arc, time::Duration};

use crate::{
    config::Retention,
    outbox::error::Operation,
    outbox::{Outbox, Result},
    runtime::meters::database_error,
    store::{Database, Fence},
};

pub(super) const PRUNE_EVERY: Duration = Duration::from_secs(60);

/// How long finished records are kept. `None`: for ever.
pub(super) fn retention<Db: Database>(outbox: &Outbox<Db>) -> Option<Duration> {
    match outbox.inner.config.processing.retention {
        Retention::For(time) => Some(time),
        // Records that were discarded, or kept under another setting.
        Retention::Delete => Some(Duration::ZERO),
        Retention::Forever => None,
    }
}

/// Removes finished records that are older than they are to be kept. Each process removes those of
/// its own partitions.
pub(super) async fn prune<Db: Database>(outbox: Outbox<Db>, fence: Arc<Fence>) {
    let Some(time) = retention(&outbox) else {
        return;
    };
    let (operations, within) = (outbox.operations(), (&*outbox.inner.sql, &*fence));
    match operations.prune_within(time, Some(within)).await {
        Ok(0) => {}
        Ok(records) => tracing::debug!(records, "finished records removed"),
        Err(error) => failed(error),
    }
}

/// Removes commands and messages that are older than they are to be remembered. Every process does;
/// what one has removed the others do not find.
pub(super) async fn forget<Db: Database>(outbox: Outbox<Db>) {
    if let Err(error) = try_forget(&outbox).await {
        failed(error);
    }
}

async fn try_forget<Db: Database>(outbox: &Outbox<Db>) -> Result<()> {
    let operations = outbox.operations();
    if let Some(time) = outbox.inner.command_retention {
        operations.prune_commands(time).await?;
    }
    if let Some(time) = outbox.inner.inbox_retention {
        operations.prune_inbox(time).await?;
    }
    Ok(())
}

/// The next run removes what this one did not.
fn failed(error: crate::outbox::Error) {
    database_error(Operation::Prune);
    let (operation, error) = (Operation::Prune.as_str(), anyhow::Error::from(error));
    tracing::warn!(
        operation,
        error = format!("{error:#}"),
        "database error; retrying in a minute"
    );
}
