//! `outbox replay` and `outbox discard`: everything that a filter selects, batch by batch.

use clap::Args;
use outbox::{
    Database,
    operations::{Filter, Operations, Paging, Status},
};
use serde_json::json;

use super::{change_by_id, list};
use crate::{
    batches::{self, Ended, Task},
    failure::{Exit, Failure, Result},
    filter::{
        FAILED, FilterArguments, PENDING, RETRYING, SCHEDULED, STATUSES, UNHANDLED, WAITING,
        status_among,
    },
    output::Output,
    progress::Progress,
    text::{counted, number},
};

pub(crate) const JSON: &str = "\
JSON, one object: changed (how many), interrupted. With IDs, one object per line: record_id, handlers (empty: the whole record),
dry_run, changed. With --dry-run and filters: dry_run, would_change (how many), items (the first of them, as in `outbox list`).";

pub(crate) const REPLAYABLE: &[Status] = &[FAILED, RETRYING, SCHEDULED];
pub(crate) const DISCARDABLE: &[Status] =
    &[FAILED, RETRYING, WAITING, PENDING, SCHEDULED, UNHANDLED];

#[derive(Debug, Args)]
pub(crate) struct ChangeArguments {
    /// The records to change; without ids, everything that the filters select
    #[arg(value_name = "ID", conflicts_with_all = ["status", "event", "key", "error", "older_than", "all"])]
    pub(super) ids: Vec<i64>,
    /// Select by status; without it, failed deliveries
    #[arg(long, value_parser = status_among(STATUSES))]
    status: Option<Status>,
    #[command(flatten)]
    pub(super) filter: FilterArguments,
    /// Select every failed delivery, if there is no filter
    #[arg(long)]
    all: bool,
    /// How many to change in one transaction, from 1 to 1000
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1000))]
    batch_size: u32,
    /// Print how many would change, and which; change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// How many --dry-run lists, from 1 to 1000
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Replay,
    Discard,
}

impl Verb {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Discard => "discard",
        }
    }

    pub(super) fn past(self) -> &'static str {
        match self {
            Self::Replay => "replayed",
            Self::Discard => "discarded",
        }
    }

    /// Whether a record or delivery with this status can be changed so.
    pub(super) fn applies_to(self, status: impl Into<Status>) -> bool {
        let statuses = match self {
            Self::Replay => REPLAYABLE,
            Self::Discard => DISCARDABLE,
        };
        statuses.contains(&status.into())
    }
}

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    verb: Verb,
    arguments: &ChangeArguments,
    output: Output,
) -> Result {
    if !arguments.ids.is_empty() {
        return change_by_id::run(operations, verb, arguments, output).await;
    }
    if arguments.filter.is_empty() && arguments.status.is_none() && !arguments.all {
        let line =
            "no record is selected: give the ID of a record, a filter such as --handler, or --all";
        return Err(Failure::new(Exit::Usage, line));
    }
    let status = arguments.status.unwrap_or(FAILED);
    let filter = arguments.filter.with_status(Some(status));
    let noun = match status {
        Status::Delivery(_) => "delivery",
        _ => "record",
    };
    if arguments.dry_run {
        return preview(operations, verb, &filter, noun, arguments.limit, output).await;
    }

    let total = if Progress::is_visible() {
        Some(operations.count(&filter).await?)
    } else {
        None
    };
    let bulk = match verb {
        Verb::Replay => operations.replaying(&filter),
        Verb::Discard => operations.discarding(&filter),
    };
    let mut bulk = bulk.batch_size(arguments.batch_size);
    let done = verb.past();
    let task = Task { done, noun, total };
    let ended = batches::run(task, output, async || bulk.next().await).await?;
    let left = match ended {
        Ended::Finished => String::new(),
        Ended::Interrupted(_) => format!(", {} left", number(operations.count(&filter).await?)),
    };
    ended.result(&left)
}

async fn preview<Db: Database>(
    operations: Operations<'_, Db>,
    verb: Verb,
    filter: &Filter,
    noun: &str,
    limit: u32,
    output: Output,
) -> Result {
    let count = operations.count(filter).await?;
    let items = operations.list(filter, Paging::oldest(limit)).await?.items;
    let all = counted(count, noun);
    let mut text = format!("would {} {all}; nothing was changed", verb.word());
    if let Some(table) = list::table(&items).unless_empty() {
        text = format!("{text}\n{table}");
    }
    let listed = u64::try_from(items.len()).unwrap_or(u64::MAX);
    if count > listed {
        text = format!("{text}\n.. and {} more", number(count - listed));
    }
    let object = json!({ "dry_run": true, "would_change": count, "items": items });
    output.print(&object, text)
}
