//! `outbox list`.

use clap::Args;
use outbox::{
    Database,
    operations::{Cursor, Listed, Order, Paging, Status},
};

use crate::{
    failure::{Exit, Failure, Result},
    filter,
    session::Session,
    table::Table,
    text,
};

pub(crate) const JSON: &str = "\
JSON, one object per line: record_id, event_id, event, key, status, created_at, due_at, completed_at; if deliveries are listed,
also delivery {id, handler, status, blocking, attempt, failure_count, first_failed_at, failed_at, due_at, finished_at, kind,
fingerprint, error}. If there are more, the standard error output says so.";

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Select by status; `waiting`, `retrying` and `failed` list deliveries, the others records
    #[arg(long, value_parser = filter::status_among(filter::STATUSES))]
    status: Option<Status>,
    #[command(flatten)]
    filter: filter::FilterArguments,
    /// How many to list, from 1 to 1000
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// The time that counts: `published`, or `failed` for deliveries by their last failure; without --status,
    /// `failed` lists deliveries that failed permanently
    #[arg(long, default_value = "published", value_parser = ["published", "failed"])]
    order: String,
    /// List the oldest first
    #[arg(long)]
    oldest: bool,
    /// Continue after the cursor that the previous list printed
    #[arg(long, value_name = "CURSOR")]
    after: Option<Cursor>,
}

impl<Db: Database> Session<'_, Db> {
    pub(crate) async fn list(&self, arguments: &ListArguments) -> Result {
        let mut paging = if arguments.oldest {
            Paging::oldest(arguments.limit)
        } else {
            Paging::newest(arguments.limit)
        };
        if let Some(cursor) = arguments.after {
            paging = paging.after(cursor);
        }
        if arguments.order == "failed" {
            if let Some(status @ Status::Record(_)) = arguments.status {
                let line = format!(
                    "--order failed lists deliveries, and `{status}` is the status of a record: use --status failed, retrying or waiting"
                );
                return Err(Failure::new(Exit::Usage, line));
            }
            paging = paging.ordered_by(Order::Failed);
        }
        let filter = arguments.filter.with_status(arguments.status);
        let page = self.operations.list(&filter, paging).await?;
        self.output.list(&page.items, table, "nothing matches")?;
        // The standard output has records only, so that another program can read it.
        if let Some(next) = page.next {
            eprintln!("more results: --after {next}");
        }
        Ok(())
    }
}

/// Records, or deliveries if the list has them.
pub(crate) fn table(items: &[Listed]) -> Option<String> {
    let deliveries: Vec<_> = items
        .iter()
        .filter_map(|item| Some((item, item.delivery.as_ref()?)))
        .collect();
    if deliveries.is_empty() {
        return Table::of(items)
            .column(">record", |item| item.record_id)
            .column("status", |item| item.status)
            .column("event", |item| text::shortened(&item.event, 40))
            .column("key", |item| text::shortened(&item.key, 40))
            .column("age", |item| text::age(item.created_at))
            .text();
    }
    Table::of(&deliveries)
        .column(">record", |(item, _)| item.record_id)
        .column("status", |(_, delivery)| delivery.status)
        .column("event", |(item, _)| text::shortened(&item.event, 30))
        .column("key", |(item, _)| text::shortened(&item.key, 30))
        .column("handler", |(_, delivery)| {
            text::shortened(&delivery.handler, 30)
        })
        .column(">attempt", |(_, delivery)| delivery.attempt)
        .column("age", |(item, _)| text::age(item.created_at))
        .column("failed", |(_, delivery)| text::ago(delivery.failed_at))
        .column("error", |(_, delivery)| {
            text::shortened(delivery.error.as_deref().unwrap_or_default(), 50)
        })
        .text()
}
