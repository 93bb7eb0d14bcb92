//! `outbox status`.

use std::time::Duration;

use clap::Args;
use outbox::{
    Database,
    operations::{ErrorCount, EventCounts, Operations},
};
use serde::Serialize;

use super::{instances, lanes};
use crate::{
    failure::Result,
    output::Output,
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
    exact: bool,
    events: &'a [EventCounts],
    instances: usize,
}

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &StatusArguments,
    output: Output,
) -> Result {
    let mut snapshot = Snapshot::read(operations, arguments.exact).await?;
    let events = snapshot.read_events(operations, arguments.exact).await?;
    let object = StatusJson {
        snapshot: &snapshot,
        exact: snapshot.is_exact(),
        events: events.get(..SHOWN).unwrap_or(&events),
        instances: snapshot.instances.len(),
    };
    output.print(&object, text(&snapshot, &events))
}

fn text(snapshot: &Snapshot, events: &[EventCounts]) -> String {
    let mut parts = vec![count_table(snapshot).to_string()];
    parts.extend(event_table(events).unless_empty());
    if events.len() > SHOWN {
        parts.push(format!(".. and {} more events", events.len() - SHOWN));
    }
    parts.extend(error_table(&snapshot.errors).unless_empty());
    if !snapshot.has_exact_breakdowns {
        parts.push("the counts by event and by error are estimates from the oldest and the newest rows of each status; `--exact` counts every row".to_owned());
    }
    parts.extend(lanes::table(&snapshot.lanes).unless_empty());
    if !snapshot.paused.is_empty() {
        parts.push(format!(
            "paused: {}",
            printable(&snapshot.paused.join(", "))
        ));
    }
    parts.push(match snapshot.instances.len() {
        0 => instances::NONE.to_owned(),
        1 => "1 instance is running".to_owned(),
        n => format!("{n} instances are running"),
    });
    parts.join("\n\n")
}

/// One row for each status, with its meaning.
fn count_table(snapshot: &Snapshot) -> Table {
    let counts = &snapshot.counts;
    let about = if snapshot.has_exact_counts { "" } else { "~" };
    let oldest = snapshot.oldest_pending_seconds.map(|seconds| {
        let age = duration(Duration::from_secs_f64(seconds));
        format!("the oldest was published {age} ago")
    });
    let oldest = oldest.unwrap_or_default();
    let rows = [
        ("pending", "", counts.pending, &*oldest),
        ("scheduled", "", counts.scheduled, "due later"),
        (
            "unhandled",
            "",
            counts.unhandled,
            "no handler for the event was found",
        ),
        (
            "waiting",
            "",
            counts.waiting,
            "behind an earlier record of the lane",
        ),
        (
            "retrying",
            "",
            counts.retrying,
            "waiting for the next attempt",
        ),
        (
            "failed",
            "",
            counts.failed,
            "no more retries; replay or discard them",
        ),
        ("completed", about, counts.completed, "not pruned yet"),
        ("discarded", about, counts.discarded, "not pruned yet"),
    ];
    let rows = rows.map(|(status, about, count, note)| {
        let count = format!("{about}{}", number(count));
        [status.to_owned(), count, note.to_owned()]
    });
    Table::new(["status", ">count", ""], rows)
}

fn event_table(events: &[EventCounts]) -> Table {
    let rows = events.iter().take(SHOWN).map(|event| {
        [
            shortened(&event.event, 40),
            number(event.pending),
            number(event.scheduled),
            number(event.unhandled),
            number(event.waiting),
            number(event.retrying),
            number(event.failed),
        ]
    });
    let names = [
        "event",
        ">pending",
        ">scheduled",
        ">unhandled",
        ">waiting",
        ">retrying",
        ">failed",
    ];
    Table::new(names, rows)
}

/// Failed deliveries by their cause.
pub(crate) fn error_table(errors: &[ErrorCount]) -> Table {
    let rows = errors.iter().map(|error| {
        [
            number(error.count),
            shortened(&error.handler, 30),
            shortened(&error.fingerprint, 16),
            shortened(&error.error, 60),
        ]
    });
    Table::new([">failed", "handler", "fingerprint", "newest error"], rows)
}
