//! Removing finished records, beside everything else.

use std::time::Duration;

use tokio::time::Instant;

use crate::runtime::event_loop::Run;
use crate::{config::Retention, store::Database};

/// How often finished records are looked for that are older than they are to be kept.
pub(in crate::runtime) const PRUNE_EVERY: Duration = Duration::from_secs(60);

impl<Db: Database> Run<Db> {
    /// Removes finished records that are older than they are to be kept, beside everything else;
    /// each process those of its own partitions.
    pub(in crate::runtime) fn start_pruning(&mut self, now: Instant) {
        if now.duration_since(self.pruned_at) < PRUNE_EVERY {
            return;
        }
        self.pruned_at = now;
        self.start_forgetting();
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
        let (outbox, fence) = (self.outbox.clone(), self.engine.leases().fence());
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

    /// Removes commands and messages that are older than they are to be remembered. Each process
    /// does: what one has removed the others do not find.
    fn start_forgetting(&mut self) {
        let forgetting = self.forgetting.as_ref();
        if forgetting.is_some_and(|forgetting| !forgetting.is_finished()) {
            return;
        }
        let outbox = self.outbox.clone();
        self.forgetting = Some(tokio::spawn(async move {
            let operations = outbox.operations();
            let (commands, messages) =
                (outbox.inner.command_retention, outbox.inner.inbox_retention);
            let forget = async {
                if let Some(time) = commands {
                    operations.prune_commands(time).await?;
                }
                if let Some(time) = messages {
                    operations.prune_inbox(time).await?;
                }
                Ok::<(), crate::outbox::Error>(())
            };
            if let Err(error) = forget.await {
                let error = anyhow::Error::from(error);
                tracing::warn!("old commands and messages were not removed: {error:#}");
            }
        }));
    }

    /// In the middle of a batch nothing of it is removed.
    pub(in crate::runtime) fn stop_pruning(&mut self) {
        for pruning in [self.pruning.take(), self.forgetting.take()]
            .into_iter()
            .flatten()
        {
            pruning.abort();
        }
    }
}
