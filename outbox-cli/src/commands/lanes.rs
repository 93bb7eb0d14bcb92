//! `outbox lanes`.

use clap::Args;
use outbox::{
    Database,
    operations::{BlockedLane, Operations, Status},
};

use crate::{
    failure::Result,
    filter::{FAILED, FilterArguments, RETRYING, status_among},
    output::Output,
    table::Table,
    text::{duration, number, shortened},
};

pub(crate) const JSON: &str = "\
The filters select lanes by the record at their head, behind which the others wait.

JSON, one object per line: key, handler, record_id, status, attempt, error, due_in_seconds (all of the head), waiting (how many
deliveries wait behind the head).";

#[derive(Debug, Args)]
pub(crate) struct LaneArguments {
    /// Select by the status of the delivery at the head
    #[arg(long, value_parser = status_among(&[RETRYING, FAILED]))]
    status: Option<Status>,
    #[command(flatten)]
    filter: FilterArguments,
    /// How many lanes to list, from 1 to 1000
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &LaneArguments,
    output: Output,
) -> Result {
    let filter = arguments.filter.with_status(arguments.status);
    let lanes = operations.blocked_lanes_of(&filter, arguments.limit);
    output.list(&lanes.await?, table, "no lane is blocked")
}

pub(crate) fn table(lanes: &[BlockedLane]) -> Table {
    let rows = lanes.iter().map(|lane| {
        [
            number(lane.waiting),
            shortened(&lane.key, 30),
            shortened(&lane.handler, 30),
            lane.record_id.to_string(),
            lane.status.to_string(),
            lane.attempt.to_string(),
            lane.due_in.map(duration).unwrap_or_default(),
            shortened(lane.error.as_deref().unwrap_or_default(), 40),
        ]
    });
    let names = [
        ">waiting", "key", "handler", ">record", "status", ">attempt", "due in", "error",
    ];
    Table::new(names, rows)
}
