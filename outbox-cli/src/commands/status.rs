//! `outbox status`.

use std::time::Duration;

use clap::Args;
use outbox::{
    Database,
    operations::{ErrorCount, EventCounts, Precision},
};
use serde::Serialize;

use super::{instances, lanes};
use crate::{
    failure::Result,
    session::Session,
    snapshot::{SHOWN, Snapshot},
    table::Table,
    text::{duration, number, printable, shortened},
};

pub(crate) const JSON: &str = "\
JSON, one object: pending, scheduled, unhandled, waiting, retrying, failed, completed, discarded; exact (false: completed and
discarded, or the numbers in events and errors, are estimates); oldest_pending_seconds;
events [{event, pending, scheduled, unhandled, waiting, retrying, failed}],
errors [{fingerprint, handler, kind, error, count, oldest_record_id, newest_record_id}] and lanes (as in `outbox lanes`), the
first ten of each; paused [handler]; instances (how many).";

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Count every row instead of estimating large numbers; takes about a second per million records
    #[arg(long)]
    exact: bool,
}

#[derive(Serialize)]
struct StatusJson<'a> {
    #[serde(flatten)]
    snapshot: &'a Snapshot,
    events: &'a [EventCounts],
    instances: usize,
}

impl<Db: Database> Session<'_, Db> {
    pub(crate) async fn status(&self, arguments: &StatusArguments) -> Result {
        let precision = if arguments.exact {
            Precision::Exact
        } else {
            Precision::Estimated
        };
        let mut snapshot = Snapshot::read(self.operations, precision).await?;
        let events = snapshot.read_events(self.operations, precision).await?;
        let object = StatusJson {
            snapshot: &snapshot,
            events: events.get(..SHOWN).unwrap_or(&events),
            instances: snapshot.instances.len(),
        };
        self.output.print(&object, text(&snapshot, &events))
    }
}

fn text(snapshot: &Snapshot, events: &[EventCounts]) -> String {
    let mut parts: Vec<String> = count_table(snapshot).into_iter().collect();
    parts.extend(event_table(events.get(..SHOWN).unwrap_or(events)));
    if events.len() > SHOWN {
        parts.push(format!(".. and {} more events", events.len() - SHOWN));
    }
    parts.extend(error_table(&snapshot.errors));
    if !snapshot.has_exact_breakdowns {
        parts.push("the counts by event and by error are estimates from the oldest and the newest rows of each status; `--exact` counts every row".to_owned());
    }
    parts.extend(lanes::table(&snapshot.lanes));
    if !snapshot.paused.is_empty() {
        let paused = printable(&snapshot.paused.join(", "));
        parts.push(format!("paused: {paused}"));
    }
    parts.push(match snapshot.instances.len() {
        0 => instances::NONE.to_owned(),
        1 => "1 instance is running".to_owned(),
        n => format!("{n} instances are running"),
    });
    parts.join("\n\n")
}

/// One row for each status, with its meaning.
fn count_table(snapshot: &Snapshot) -> Option<String> {
    let about = if snapshot.has_exact_counts { "" } else { "~" };
    let oldest = snapshot.oldest_pending_seconds.map(|seconds| {
        let age = duration(Duration::from_secs_f64(seconds));
        format!("the oldest was published {age} ago")
    });
    let oldest = oldest.unwrap_or_default();
    let c = &snapshot.counts;
    let rows = [
        ("pending", c.pending, &*oldest),
        ("scheduled", c.scheduled, "due later"),
        (
            "unhandled",
            c.unhandled,
            "no handler for the event was found",
        ),
        ("waiting", c.waiting, "behind an earlier record of the lane"),
        ("retrying", c.retrying, "waiting for the next attempt"),
        (
            "failed",
            c.failed,
            "no more retries; replay or discard them",
        ),
        ("completed", c.completed, "not pruned yet"),
        ("discarded", c.discarded, "not pruned yet"),
    ];
    let is_finished = |status| matches!(status, "completed" | "discarded");
    Table::of(&rows)
        .column("status", |row| row.0)
        .column(">count", |row| {
            let about = if is_finished(row.0) { about } else { "" };
            format!("{about}{}", number(row.1))
        })
        .column("", |row| row.2)
        .text()
}

fn event_table(events: &[EventCounts]) -> Option<String> {
    Table::of(events)
        .column("event", |event| shortened(&event.event, 40))
        .column(">pending", |event| number(event.pending))
        .column(">scheduled", |event| number(event.scheduled))
        .column(">unhandled", |event| number(event.unhandled))
        .column(">waiting", |event| number(event.waiting))
        .column(">retrying", |event| number(event.retrying))
        .column(">failed", |event| number(event.failed))
        .text()
}

/// Failed deliveries by their cause.
pub(crate) fn error_table(errors: &[ErrorCount]) -> Option<String> {
    Table::of(errors)
        .column(">failed", |error| number(error.count))
        .column("handler", |error| shortened(&error.handler, 30))
        .column("fingerprint", |error| shortened(&error.fingerprint, 16))
        .column("newest error", |error| shortened(&error.error, 60))
        .text()
}
