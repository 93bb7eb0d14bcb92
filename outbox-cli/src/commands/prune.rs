//! `outbox prune`.

use std::time::Duration;

use clap::Args;
use outbox::Database;
use serde_json::json;

use crate::{batches, failure::Result, session::Session, text};

pub(crate) const JSON: &str = "\
JSON, one object: changed (how many were deleted), interrupted. With --dry-run: dry_run, would_delete (how many),
oldest_record_id, newest_record_id.";

#[derive(Debug, Args)]
pub(crate) struct PruneArguments {
    /// Delete records that were finished longer ago than this, for example 7d
    #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
    older_than: Duration,
    /// Print how many records would be deleted, and which; delete nothing
    #[arg(long)]
    dry_run: bool,
}

impl<Db: Database> Session<'_, Db> {
    pub(crate) async fn prune(&self, arguments: &PruneArguments) -> Result {
        let mut pruning = self.operations.pruning(arguments.older_than);
        if !arguments.dry_run {
            let (done, noun, total) = ("deleted", "record", None);
            let task = batches::Task { done, noun, total };
            let unknown = async || Ok(String::new());
            return batches::run(task, self.output, async || pruning.next().await, unknown).await;
        }
        let (mut count, mut oldest, mut newest) = (0, None, None);
        while let Some(ids) = pruning.skip().await? {
            count += u64::try_from(ids.len()).unwrap_or(u64::MAX);
            oldest = oldest.or(ids.first().copied());
            newest = ids.last().copied().or(newest);
        }
        let ids = oldest
            .zip(newest)
            .map(|(oldest, newest)| format!(", ids {oldest} to {newest}"));
        let line = format!(
            "would delete {} finished more than {} ago{}; nothing was changed",
            text::counted(count, "record"),
            text::duration(arguments.older_than),
            ids.unwrap_or_default(),
        );
        let object = json!({
            "dry_run": true,
            "would_delete": count,
            "oldest_record_id": oldest,
            "newest_record_id": newest,
        });
        self.output.print(&object, line)
    }
}
