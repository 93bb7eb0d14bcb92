//! `outbox show`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use outbox::{
    Database,
    operations::{Failure as Failed, Inspected, Operations},
};
use serde::Serialize;

use crate::{
    arguments::ShowArguments,
    failure::Failure,
    output::Output,
    shape::DeliveryShape,
    table::Table,
    words::{ago, moment, plain, short},
};

/// Everything of one record. `payload` is the event itself, or text if it is no JSON.
#[derive(Serialize)]
struct Shape<'a> {
    record_id: i64,
    event_id: String,
    event: &'a str,
    version: u32,
    key: &'a str,
    status: &'static str,
    created_at: Timestamp,
    due_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    max_retries: Option<u32>,
    headers: &'a BTreeMap<String, String>,
    payload: serde_json::Value,
    deliveries: Vec<DeliveryShape<'a>>,
    failures: Vec<FailedShape<'a>>,
}

/// An attempt that failed.
#[derive(Serialize)]
struct FailedShape<'a> {
    handler: &'a str,
    attempt: u32,
    failed_at: Timestamp,
    kind: &'a str,
    fingerprint: &'a str,
    error: &'a str,
}

impl<'a> From<&'a Failed> for FailedShape<'a> {
    fn from(failed: &'a Failed) -> Self {
        Self {
            handler: &failed.handler,
            attempt: failed.attempt,
            failed_at: failed.failed_at,
            kind: &failed.kind,
            fingerprint: &failed.fingerprint,
            error: &failed.error,
        }
    }
}

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &ShowArguments,
    output: Output,
) -> Result<(), Failure> {
    let found = operations.inspect(arguments.id).await?;
    let found = found.ok_or_else(|| no_such_record(arguments.id))?;
    if output.is_json() {
        return output.object(&shape(&found));
    }
    output.line(text(&found))
}

pub(crate) fn no_such_record(id: i64) -> Failure {
    Failure::NotFound(format!(
        "there is no record {id}: it never was, or it was done and removed; see `outbox list`"
    ))
}

fn shape(found: &Inspected) -> Shape<'_> {
    let record = &found.record;
    Shape {
        record_id: record.id,
        event_id: record.event_id.to_string(),
        event: &record.event,
        version: record.version,
        key: &record.key,
        status: found.status.as_str(),
        created_at: record.created_at,
        due_at: found.due_at,
        completed_at: found.completed_at,
        max_retries: record.max_retries,
        headers: &record.headers,
        payload: serde_json::from_str(&record.payload)
            .unwrap_or_else(|_| record.payload.clone().into()),
        deliveries: found.deliveries.iter().map(Into::into).collect(),
        failures: found.failures.iter().map(Into::into).collect(),
    }
}

fn text(found: &Inspected) -> String {
    let record = &found.record;
    let when = |at: Timestamp| format!("{} ({} ago)", moment(at), ago(at));
    let mut lines = vec![
        format!("record     {}", record.id),
        format!(
            "event      {} version {}",
            plain(&record.event),
            record.version
        ),
        format!("event id   {}", record.event_id),
        format!("key        {}", plain(&record.key)),
        format!("status     {}", found.status),
        format!("published  {}", when(record.created_at)),
    ];
    lines.extend(found.due_at.map(|at| format!("due        {}", moment(at))));
    lines.extend(
        found
            .completed_at
            .map(|at| format!("finished   {}", when(at))),
    );
    lines.extend(
        record
            .max_retries
            .map(|n| format!("retries    at most {n}")),
    );
    for (name, value) in &record.headers {
        lines.push(format!("header     {}: {}", plain(name), plain(value)));
    }
    lines.push(format!("payload    {}", plain(&record.payload)));
    let mut text = lines.join("\n");
    if !found.deliveries.is_empty() {
        text.push_str(&format!("\n\n{}", deliveries(found)));
    }
    if !found.failures.is_empty() {
        text.push_str(&format!("\n\n{}", failures(found)));
    }
    text
}

fn deliveries(found: &Inspected) -> Table {
    let mut table = Table::new([
        "handler",
        "status",
        ">attempt",
        ">failures",
        "blocks its lane",
        "due",
    ]);
    for delivery in &found.deliveries {
        let blocks = if delivery.blocking { "yes" } else { "no" };
        table.row([
            short(&delivery.handler, 40),
            delivery.status.to_string(),
            delivery.attempt.to_string(),
            delivery.failure_count.to_string(),
            blocks.to_owned(),
            delivery.due_at.map(moment).unwrap_or_default(),
        ]);
    }
    table
}

fn failures(found: &Inspected) -> Table {
    let mut table = Table::new([
        "handler",
        ">attempt",
        "failed at",
        "kind",
        "fingerprint",
        "error",
    ]);
    for failed in &found.failures {
        table.row([
            short(&failed.handler, 40),
            failed.attempt.to_string(),
            moment(failed.failed_at),
            failed.kind.clone(),
            failed.fingerprint.clone(),
            plain(&failed.error),
        ]);
    }
    table
}
