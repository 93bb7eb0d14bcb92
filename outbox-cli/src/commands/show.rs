//! `outbox show`.

use clap::Args;
use jiff::Timestamp;
use outbox::{
    Database,
    operations::{Inspected, Operations},
};
use serde_json::{Value, json};

use crate::{
    failure::{Exit, Failure, Result},
    output::Output,
    table::Table,
    text::{age, printable, shortened, to_the_second},
};

pub(crate) const JSON: &str = "\
JSON, one object: record_id, event_id, event, version, key, status, created_at, due_at, completed_at, max_retries, headers,
payload (the event as JSON), deliveries (as in `outbox list`), failures [{handler, attempt, failed_at, kind, fingerprint, error}].";

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The id of the record
    id: i64,
}

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &ShowArguments,
    output: Output,
) -> Result {
    let found = operations.inspect(arguments.id).await?;
    let found = found.ok_or_else(|| no_such_record(arguments.id))?;
    output.print(&json(&found), text(&found))
}

pub(crate) fn no_such_record(id: i64) -> Failure {
    let line = format!(
        "record {id} does not exist; it may have been completed and deleted: see `outbox list`"
    );
    Failure::new(Exit::NotFound, line)
}

fn json(found: &Inspected) -> Value {
    let record = &found.record;
    // A payload that is no JSON is shown as text.
    let payload = serde_json::from_str(&record.payload);
    json!({
        "record_id": record.id,
        "event_id": record.event_id,
        "event": record.event,
        "version": record.version,
        "key": record.key,
        "status": found.status,
        "created_at": record.created_at,
        "due_at": found.due_at,
        "completed_at": found.completed_at,
        "max_retries": record.max_retries,
        "headers": record.headers,
        "payload": payload.unwrap_or_else(|_| Value::from(&*record.payload)),
        "deliveries": found.deliveries,
        "failures": found.failures,
    })
}

fn text(found: &Inspected) -> String {
    let record = &found.record;
    let with_age = |at: Timestamp| format!("{} ({} ago)", to_the_second(at), age(at));
    let mut fields = vec![
        ("record", record.id.to_string()),
        (
            "event",
            format!("{} version {}", record.event, record.version),
        ),
        ("event id", record.event_id.to_string()),
        ("key", record.key.clone()),
        ("status", found.status.to_string()),
        ("published", with_age(record.created_at)),
    ];
    fields.extend(found.due_at.map(|at| ("due", to_the_second(at))));
    fields.extend(found.completed_at.map(|at| ("finished", with_age(at))));
    let retries = record.max_retries;
    fields.extend(retries.map(|most| ("retries", format!("at most {most}"))));
    for (name, value) in &record.headers {
        fields.push(("header", format!("{name}: {value}")));
    }
    fields.push(("payload", record.payload.clone()));
    let lines = fields
        .iter()
        .map(|(name, value)| format!("{name:<10} {}", printable(value)));
    let mut parts = vec![lines.collect::<Vec<_>>().join("\n")];
    parts.extend(deliveries(found).unless_empty());
    parts.extend(failures(found).unless_empty());
    parts.join("\n\n")
}

fn deliveries(found: &Inspected) -> Table {
    let rows = found.deliveries.iter().map(|delivery| {
        let blocks = if delivery.blocking { "yes" } else { "no" };
        [
            shortened(&delivery.handler, 40),
            delivery.status.to_string(),
            delivery.attempt.to_string(),
            delivery.failure_count.to_string(),
            blocks.to_owned(),
            delivery.due_at.map(to_the_second).unwrap_or_default(),
        ]
    });
    let names = [
        "handler",
        "status",
        ">attempt",
        ">failures",
        "blocks its lane",
        "due",
    ];
    Table::new(names, rows)
}

fn failures(found: &Inspected) -> Table {
    let rows = found.failures.iter().map(|failure| {
        [
            shortened(&failure.handler, 40),
            failure.attempt.to_string(),
            to_the_second(failure.failed_at),
            failure.kind.clone(),
            failure.fingerprint.clone(),
            failure.error.clone(),
        ]
    });
    let names = [
        "handler",
        ">attempt",
        "failed at",
        "kind",
        "fingerprint",
        "error",
    ];
    Table::new(names, rows)
}
