//! `outbox prune`.

use std::time::Duration;

use clap::Args;
use outbox::{Database, operations::Operations};
use serde_json::json;

use crate::{
    batches::{self, Task},
    failure::Result,
    output::Output,
    text::{counted, duration},
};

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

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &PruneArguments,
    output: Output,
) -> Result {
    if arguments.dry_run {
        return preview(operations, arguments.older_than, output).await;
    }
    let task = Task {
        done: "deleted",
        noun: "record",
        total: None,
    };
    let mut pruning = operations.pruning(arguments.older_than);
    let ended = batches::run(task, output, async || pruning.next().await).await?;
    ended.result("")
}

async fn preview<Db: Database>(
    operations: Operations<'_, Db>,
    older_than: Duration,
    output: Output,
) -> Result {
    let mut pruning = operations.pruning(older_than);
    let (mut count, mut oldest, mut newest) = (0, None, None);
    while let Some(ids) = pruning.skip().await? {
        count += u64::try_from(ids.len()).unwrap_or(u64::MAX);
        oldest = oldest.or(ids.first().copied());
        newest = ids.last().copied().or(newest);
    }
    let ids = match (oldest, newest) {
        (Some(oldest), Some(newest)) => format!(", ids {oldest} to {newest}"),
        _ => String::new(),
    };
    let text = format!(
        "would delete {} finished more than {} ago{ids}; nothing was changed",
        counted(count, "record"),
        duration(older_than),
    );
    let object = json!({
        "dry_run": true,
        "would_delete": count,
        "oldest_record_id": oldest,
        "newest_record_id": newest,
    });
    output.print(&object, text)
}
