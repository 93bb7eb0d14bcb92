//! `outbox status`.

use outbox::{
    Database,
    operations::{BlockedLane, Counts, ErrorCount, EventCounts, Operations, Precision},
};
use serde::Serialize;

use crate::{
    arguments::StatusArguments,
    failure::Failure,
    lanes,
    output::Output,
    shape::{CountsShape, ErrorShape, EventShape, LaneShape},
    table::Table,
    words::{count, short, span},
};

/// How many events, causes and lanes are named.
const FIRST: usize = 10;

/// Counts, and `oldest_pending_seconds`, `events`, `errors`, `lanes` (the first ten of each),
/// `paused`, `instances`.
#[derive(Serialize)]
struct Shape<'a> {
    #[serde(flatten)]
    counts: CountsShape,
    oldest_pending_seconds: Option<f64>,
    events: Vec<EventShape<'a>>,
    errors: Vec<ErrorShape<'a>>,
    lanes: Vec<LaneShape<'a>>,
    paused: &'a [String],
    instances: usize,
}

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &StatusArguments,
    output: Output,
) -> Result<(), Failure> {
    let precision = if arguments.exact {
        Precision::Exact
    } else {
        Precision::Estimated
    };
    let counts = operations.counts(precision).await?;
    let oldest = operations.oldest_pending_age().await?;
    let events = operations.counts_by_event(precision).await?;
    let mut errors = operations.counts_by_error(precision).await?;
    let all = events.exact && errors.exact;
    errors.items.truncate(FIRST);
    let lanes = operations.blocked_lanes(10).await?;
    let paused = operations.paused().await?;
    let instances = operations.instances().await?.len();
    if output.is_json() {
        return output.object(&Shape {
            counts: CountsShape::of(&counts, counts.exact && all),
            oldest_pending_seconds: oldest.map(|age| age.as_secs_f64()),
            events: events.items.iter().take(FIRST).map(Into::into).collect(),
            errors: errors.items.iter().map(Into::into).collect(),
            lanes: lanes.iter().map(Into::into).collect(),
            paused: &paused,
            instances,
        });
    }
    let oldest = oldest.map(|age| format!("the oldest for {}", span(age)));
    let oldest = oldest.unwrap_or_default();
    let mut parts = vec![of_counts(&counts, &oldest).to_string()];
    parts.extend(of_events(&events.items));
    parts.extend(of_errors(&errors.items));
    if !all {
        parts.push("events and causes are estimated from the oldest and newest of each status; `--exact` counts them".to_owned());
    }
    parts.extend(of_lanes(&lanes));
    if !paused.is_empty() {
        let names: Vec<String> = paused.iter().map(|name| short(name, 60)).collect();
        parts.push(format!("paused: {}", names.join(", ")));
    }
    parts.push(match instances {
        0 => "no instance is running: nothing is delivered".to_owned(),
        1 => "1 instance is running".to_owned(),
        n => format!("{n} instances are running"),
    });
    output.line(parts.join("\n\n"))
}

/// One line for each status, and what it means.
fn of_counts(counts: &Counts, oldest: &str) -> Table {
    let about = |number| format!("{}{}", if counts.exact { "" } else { "~" }, count(number));
    let mut table = Table::new(["status", ">count", ""]);
    let mut row = |status: &str, number: String, note: &str| {
        table.row([status.to_owned(), number, note.to_owned()]);
    };
    row("pending", count(counts.pending), oldest);
    row("scheduled", count(counts.scheduled), "due at a later time");
    row("unhandled", count(counts.unhandled), "no handler was there");
    row(
        "waiting",
        count(counts.waiting),
        "behind another of their lane",
    );
    row(
        "retrying",
        count(counts.retrying),
        "before their next attempt",
    );
    row(
        "failed",
        count(counts.failed),
        "for good: replay or discard them",
    );
    row(
        "completed",
        about(counts.completed),
        "as far as they are kept",
    );
    row(
        "discarded",
        about(counts.discarded),
        "as far as they are kept",
    );
    table
}

fn of_events(events: &[EventCounts]) -> Option<String> {
    let mut table = Table::new([
        "event",
        ">pending",
        ">scheduled",
        ">unhandled",
        ">waiting",
        ">retrying",
        ">failed",
    ]);
    for event in events.iter().take(FIRST) {
        table.row([
            short(&event.event, 40),
            count(event.pending),
            count(event.scheduled),
            count(event.unhandled),
            count(event.waiting),
            count(event.retrying),
            count(event.failed),
        ]);
    }
    let more = events.len().saturating_sub(FIRST);
    let more = (more > 0).then(|| format!("\n.. and {more} more events"));
    (!table.is_empty()).then(|| format!("{table}{}", more.unwrap_or_default()))
}

/// Failures by their cause.
pub(crate) fn of_errors(errors: &[ErrorCount]) -> Option<String> {
    let mut table = Table::new([">failed", "handler", "fingerprint", "newest error"]);
    for error in errors {
        table.row([
            count(error.count),
            short(&error.handler, 30),
            short(&error.fingerprint, 19),
            short(&error.error, 60),
        ]);
    }
    (!table.is_empty()).then(|| table.to_string())
}

fn of_lanes(lanes: &[BlockedLane]) -> Option<String> {
    (!lanes.is_empty()).then(|| lanes::table(lanes).to_string())
}
