//! `outbox show`.

use clap::Args;
use jiff::Timestamp;
use outbox::{Database, operations::Inspected};

use crate::{
    failure::{Exit, Failure, Result},
    session::Session,
    table::Table,
    text::{age, printable, shortened, to_the_second},
};

pub(crate) const JSON: &str = "\
JSON, one object, which `outbox restore` puts back: record_id, event_id, event, version, key, status, created_at, due_at,
completed_at, max_retries, pinned_max_retries, dedup_key, headers, payload (the event as JSON; payload_text if it is no JSON),
deliveries (as in `outbox list`), failures [{handler, attempt, failed_at, kind, fingerprint, error}].";

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The id of the record
    id: i64,
}

impl<Db: Database> Session<'_, Db> {
    pub(crate) async fn show(&self, arguments: &ShowArguments) -> Result {
        let found = self.inspect(arguments.id).await?;
        self.output.print(&found, text(&found))
    }

    pub(super) async fn inspect(&self, id: i64) -> Result<Inspected> {
        let line = format!(
            "record {id} does not exist; it may have been completed and deleted: see `outbox list`"
        );
        let found = self.operations.inspect(id).await?;
        found.ok_or_else(|| Failure::new(Exit::NotFound, line))
    }
}

fn text(found: &Inspected) -> String {
    let record = &found.record;
    let with_age = |at: Timestamp| format!("{} ({} ago)", to_the_second(at), age(at));
    let event = format!("{} version {}", record.event, record.version);
    let mut fields = vec![
        ("record", record.id.to_string()),
        ("event", event),
        ("event id", record.event_id.to_string()),
        ("key", record.key.clone()),
        ("status", found.status.to_string()),
        ("published", with_age(record.created_at)),
    ];
    fields.extend(found.due_at.map(|at| ("due", to_the_second(at))));
    fields.extend(found.completed_at.map(|at| ("finished", with_age(at))));
    let retries = record.max_retries;
    fields.extend(retries.map(|most| ("retries", format!("at most {most}"))));
    let dedup_key = found.dedup_key.clone();
    fields.extend(dedup_key.map(|key| ("dedup key", key)));
    let headers = record.headers.iter();
    fields.extend(headers.map(|(name, value)| ("header", format!("{name}: {value}"))));
    fields.push(("payload", record.payload.clone()));
    let lines = fields
        .iter()
        .map(|(name, value)| format!("{name:<10} {}", printable(value)));
    let mut parts = vec![lines.collect::<Vec<_>>().join("\n")];
    let deliveries = Table::of(&found.deliveries)
        .column("handler", |delivery| shortened(&delivery.handler, 40))
        .column("status", |delivery| delivery.status)
        .column(">attempt", |delivery| delivery.attempt)
        .column(">failures", |delivery| delivery.failure_count)
        .column("blocks its lane", |delivery| {
            if delivery.blocking { "yes" } else { "no" }
        })
        .column("failed at", |delivery| {
            delivery.failed_at.map(to_the_second).unwrap_or_default()
        })
        .column("due", |delivery| {
            delivery.due_at.map(to_the_second).unwrap_or_default()
        });
    let failures = Table::of(&found.failures)
        .column("handler", |failure| shortened(&failure.handler, 40))
        .column(">attempt", |failure| failure.attempt)
        .column("failed at", |failure| to_the_second(failure.failed_at))
        .column("kind", |failure| failure.kind.clone())
        .column("fingerprint", |failure| failure.fingerprint.clone())
        .column("error", |failure| failure.error.clone());
    parts.extend(deliveries.text());
    parts.extend(failures.text());
    parts.join("\n\n")
}
