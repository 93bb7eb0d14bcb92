//! `outbox lanes`.

use outbox::{
    Database,
    operations::{BlockedLane, Operations},
};

use crate::{
    arguments::LaneArguments,
    failure::Failure,
    output::Output,
    shape::LaneShape,
    table::Table,
    words::{count, short, span},
};

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &LaneArguments,
    output: Output,
) -> Result<(), Failure> {
    let filter = arguments.selection.filter();
    let lanes = operations
        .blocked_lanes_of(&filter, arguments.limit)
        .await?;
    if output.is_json() {
        return lanes
            .iter()
            .try_for_each(|lane| output.object(&LaneShape::from(lane)));
    }
    if lanes.is_empty() {
        return output.line("no lane is blocked");
    }
    output.line(table(&lanes))
}

/// Lanes, by how many wait in them.
pub(crate) fn table(lanes: &[BlockedLane]) -> Table {
    let mut table = Table::new([
        ">waiting", "key", "handler", ">record", "status", ">attempt", "due in", "error",
    ]);
    for lane in lanes {
        table.row([
            count(lane.waiting),
            short(&lane.key, 30),
            short(&lane.handler, 30),
            lane.record_id.to_string(),
            lane.status.to_string(),
            lane.attempt.to_string(),
            lane.due_in.map(span).unwrap_or_default(),
            short(lane.error.as_deref().unwrap_or_default(), 40),
        ]);
    }
    table
}
