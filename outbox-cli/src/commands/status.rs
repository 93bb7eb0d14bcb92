//! `outbox status`.

use std::time::Duration;

use clap::Args;
use outbox::{Database, operations};
use serde::Serialize;

use super::{instances, lanes};
use crate::{failure::Result, session::Session, snapshot, table::Table, text};

pub(crate) const JSON: &str = "\
JSON, one object: pending, scheduled, unhandled, waiting, retrying, failed, completed, discarded; exact (false: completed and
discarded, or the numbers in events and errors, are estimates); oldest_pending_seconds;
events [{event, pending, scheduled, unhandled, waiting, retrying, failed, newest_failed_at}], the events with the most first,
errors [{fingerprint, handler, kind, error, count, oldest_record_id, newest_record_id, oldest_failed_at, newest_failed_at}] and
lanes (as in `outbox lanes`), the first ten of each; paused [handler]; instances (how many).";

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Count every row instead of estimating large numbers; takes about a second per million records
    #[arg(long)]
    exact: bool,
}

#[derive(Serialize)]
struct StatusJson<'a> {
    #[serde(flatten)]
    snapshot: &'a snapshot::Snapshot,
    events: &'a [operations::EventCounts],
    instances: usize,
}

impl<Db: Database> Session<'_, Db> {
    pub(crate) async fn status(&self, arguments: &StatusArguments) -> Result {
        let precision = if arguments.exact {
            operations::Precision::Exact
        } else {
            operations::Precision::Estimated
        };
        let mut snapshot = self.snapshot(precision).await?;
        let mut events = self.operations.counts_by_event(precision).await?;
        let more_events = events.items.len().saturating_sub(snapshot::SHOWN);
        events.items.truncate(snapshot::SHOWN);
        snapshot.has_exact_breakdowns &= events.exact;
        snapshot.counts.exact &= events.exact;
        let object = StatusJson {
            snapshot: &snapshot,
            events: &events.items,
            instances: snapshot.instances.len(),
        };
        self.output.print(&object, text_of(&object, more_events))
    }
}

fn text_of(status: &StatusJson<'_>, more_events: usize) -> String {
    let snapshot = status.snapshot;
    let mut parts: Vec<String> = count_table(snapshot).into_iter().collect();
    parts.extend(event_table(status.events));
    if more_events > 0 {
        parts.push(format!(".. and {more_events} more events"));
    }
    parts.extend(error_table(&snapshot.errors));
    if !snapshot.has_exact_breakdowns {
        parts.push("the counts by event and by error are estimates from the oldest and the newest rows of each status; `--exact` counts every row".to_owned());
    }
    parts.extend(lanes::table(&snapshot.lanes));
    if !snapshot.paused.is_empty() {
        let paused = text::printable(&snapshot.paused.join(", "));
        parts.push(format!("paused: {paused}"));
    }
    parts.push(match status.instances {
        0 => instances::NONE.to_owned(),
        1 => "1 instance is running".to_owned(),
        n => format!("{n} instances are running"),
    });
    parts.join("\n\n")
}

/// One row for each status, with its meaning.
fn count_table(snapshot: &snapshot::Snapshot) -> Option<String> {
    let about = if snapshot.has_exact_counts { "" } else { "~" };
    let oldest = snapshot.oldest_pending_seconds.map(|seconds| {
        let age = text::duration(Duration::from_secs_f64(seconds));
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
            format!("{about}{}", text::number(row.1))
        })
        .column("", |row| row.2)
        .text()
}

fn event_table(events: &[operations::EventCounts]) -> Option<String> {
    Table::of(events)
        .column("event", |event| text::shortened(&event.event, 40))
        .column(">pending", |event| text::number(event.pending))
        .column(">scheduled", |event| text::number(event.scheduled))
        .column(">unhandled", |event| text::number(event.unhandled))
        .column(">waiting", |event| text::number(event.waiting))
        .column(">retrying", |event| text::number(event.retrying))
        .column(">failed", |event| text::number(event.failed))
        .column("newest failure", |event| text::ago(event.newest_failed_at))
        .text()
}

/// Failed deliveries by their cause.
pub(crate) fn error_table(errors: &[operations::ErrorCount]) -> Option<String> {
    Table::of(errors)
        .column(">failed", |error| text::number(error.count))
        .column("handler", |error| text::shortened(&error.handler, 30))
        .column("fingerprint", |error| {
            text::shortened(&error.fingerprint, 16)
        })
        .column("newest failure", |error| text::ago(error.newest_failed_at))
        .column("newest error", |error| text::shortened(&error.error, 60))
        .text()
}
