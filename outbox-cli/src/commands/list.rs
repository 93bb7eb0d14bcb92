//! `outbox list`.

use clap::Args;
use outbox::{
    Database,
    operations::{Cursor, Listed, Operations, Paging, Status},
};

use crate::{
    failure::Result,
    filter::{FilterArguments, STATUSES, status_among},
    output::Output,
    table::Table,
    text::{age, shortened},
};

pub(crate) const JSON: &str = "\
JSON, one object per line: record_id, event_id, event, key, status, created_at, due_at, completed_at; if deliveries are listed,
also delivery {handler, status, blocking, attempt, failure_count, first_failed_at, due_at, finished_at, kind, fingerprint,
error}. If there are more, the standard error output says so.";

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Select by status; `waiting`, `retrying` and `failed` list deliveries, the others records
    #[arg(long, value_parser = status_among(STATUSES))]
    status: Option<Status>,
    #[command(flatten)]
    filter: FilterArguments,
    /// How many to list, from 1 to 1000
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// List the oldest first
    #[arg(long)]
    oldest: bool,
    /// Continue after the cursor that the previous list printed
    #[arg(long, value_name = "CURSOR")]
    after: Option<Cursor>,
}

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &ListArguments,
    output: Output,
) -> Result {
    let mut paging = if arguments.oldest {
        Paging::oldest(arguments.limit)
    } else {
        Paging::newest(arguments.limit)
    };
    if let Some(cursor) = arguments.after {
        paging = paging.after(cursor);
    }
    let filter = arguments.filter.with_status(arguments.status);
    let page = operations.list(&filter, paging).await?;
    output.list(&page.items, table, "nothing matches")?;
    // The standard output has records only, so that another program can read it.
    if let Some(next) = page.next {
        eprintln!("more results: --after {next}");
    }
    Ok(())
}

/// Records, or deliveries if the list has them.
pub(crate) fn table(items: &[Listed]) -> Table {
    let deliveries: Vec<_> = items
        .iter()
        .filter_map(|item| item.delivery.as_ref().map(|delivery| (item, delivery)))
        .collect();
    if deliveries.is_empty() {
        let rows = items.iter().map(|item| {
            [
                item.record_id.to_string(),
                item.status.to_string(),
                shortened(&item.event, 40),
                shortened(&item.key, 40),
                age(item.created_at),
            ]
        });
        return Table::new([">record", "status", "event", "key", "age"], rows);
    }
    let rows = deliveries.iter().map(|(item, delivery)| {
        [
            item.record_id.to_string(),
            delivery.status.to_string(),
            shortened(&item.event, 30),
            shortened(&item.key, 30),
            shortened(&delivery.handler, 30),
            delivery.attempt.to_string(),
            age(item.created_at),
            shortened(delivery.error.as_deref().unwrap_or_default(), 50),
        ]
    });
    let names = [
        ">record", "status", "event", "key", "handler", ">attempt", "age", "error",
    ];
    Table::new(names, rows)
}
