//! Removing finished records, beside everything else.

use std::time::Duration;

use tokio::time::Instant;

use super::run::Run;
use crate::{Database, Retention};

/// How often finished records are looked for that are older than they are to be kept.
pub(super) const PRUNE_EVERY: Duration = Duration::from_secs(60);

impl<Db: Database> Run<Db> {
    /// Removes finished records that are older than they are to be kept, beside everything else;
    /// each process those of its own partitions.
    pub(super) fn start_pruning(&mut self, now: Instant) {
        if now.duration_since(self.pruned_at) < PRUNE_EVERY {
            return;
        }
        self.pruned_at = now;
        let busy = self.pruning.as_ref();
        let time = match self.outbox.inner.config.processing.retention {
            Retention::For(time) => time,
            // What was discarded, and what was kept under another setting.
            Retention::Delete => Duration::ZERO,
            Retention::Forever => return,
        };
        if busy.is_some_and(|pruning| !pruning.is_finished()) {
            return;
        }
        let (outbox, fence) = (self.outbox.clone(), self.engine.leases.fence());
        self.pruning = Some(tokio::spawn(async move {
            let operations = outbox.operations();
            match operations.prune_within(time, Some(&fence)).await {
                Ok(0) => {}
                Ok(records) => tracing::debug!(records, "removed finished records"),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    tracing::warn!("finished records were not removed: {error:#}");
                }
            }
        }));
    }

    /// In the middle of a batch nothing of it is removed.
    pub(super) fn stop_pruning(&mut self) {
        if let Some(pruning) = self.pruning.take() {
            pruning.abort();
        }
    }
}
