//! `outbox replay` and `outbox discard`: everything that a filter selects, batch by batch.

use clap::Args;
use outbox::{
    Database,
    operations::{Filter, Paging, Status},
};
use serde_json::json;

use super::list;
use crate::{
    batches::{self, Task},
    failure::{Exit, Failure, Result},
    filter::{
        FAILED, FilterArguments, PENDING, RETRYING, SCHEDULED, STATUSES, UNHANDLED, WAITING,
        status_among,
    },
    progress::Progress,
    session::Session,
    text::{counted, number},
};

pub(crate) const JSON: &str = "\
JSON, one object: changed (how many), interrupted. With IDs, one object per line: record_id, handlers (empty: the whole record),
dry_run, changed. With --dry-run and filters: dry_run, would_change (how many), items (the first of them, as in `outbox list`).";

#[derive(Debug, Args)]
pub(crate) struct ChangeArguments {
    /// The records to change; without ids, everything that the filters select
    #[arg(value_name = "ID", conflicts_with_all = ["status", "event", "key", "error", "older_than", "failed_since", "all"])]
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

/// What distinguishes the two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verb {
    pub(super) word: &'static str,
    pub(super) past: &'static str,
    /// A record or delivery with one of these can be changed so.
    pub(crate) statuses: &'static [Status],
}

pub(crate) const REPLAY: Verb = Verb {
    word: "replay",
    past: "replayed",
    statuses: &[FAILED, RETRYING, SCHEDULED],
};
pub(crate) const DISCARD: Verb = Verb {
    word: "discard",
    past: "discarded",
    statuses: &[FAILED, RETRYING, WAITING, PENDING, SCHEDULED, UNHANDLED],
};

impl<Db: Database> Session<'_, Db> {
    pub(crate) async fn change(&self, verb: Verb, arguments: &ChangeArguments) -> Result {
        if !arguments.ids.is_empty() {
            return self.change_by_id(verb, arguments).await;
        }
        if arguments.filter.is_empty() && arguments.status.is_none() && !arguments.all {
            let line = "no record is selected: give the ID of a record, a filter such as --handler, or --all";
            return Err(Failure::new(Exit::Usage, line));
        }
        let status = arguments.status.unwrap_or(FAILED);
        let filter = arguments.filter.with_status(Some(status));
        let noun = match status {
            Status::Delivery(_) => "delivery",
            _ => "record",
        };
        if arguments.dry_run {
            return self.preview(verb, &filter, noun, arguments.limit).await;
        }

        let total = if Progress::is_visible() {
            Some(self.operations.count(&filter).await?)
        } else {
            None
        };
        let bulk = if verb == REPLAY {
            self.operations.replaying(&filter)
        } else {
            self.operations.discarding(&filter)
        };
        let mut bulk = bulk.batch_size(arguments.batch_size);
        let done = verb.past;
        let task = Task { done, noun, total };
        let left = async || {
            let left = self.operations.count(&filter).await?;
            Ok(format!(", {} left", number(left)))
        };
        batches::run(task, self.output, async || bulk.next().await, left).await
    }

    async fn preview(&self, verb: Verb, filter: &Filter, noun: &str, limit: u32) -> Result {
        let count = self.operations.count(filter).await?;
        let paging = Paging::oldest(limit);
        let items = self.operations.list(filter, paging).await?.items;
        let all = counted(count, noun);
        let mut lines = vec![format!("would {} {all}; nothing was changed", verb.word)];
        lines.extend(list::table(&items));
        let listed = u64::try_from(items.len()).unwrap_or(u64::MAX);
        if count > listed {
            lines.push(format!(".. and {} more", number(count - listed)));
        }
        let object = json!({ "dry_run": true, "would_change": count, "items": items });
        self.output.print(&object, lines.join("\n"))
    }
}
