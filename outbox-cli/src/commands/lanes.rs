//! `outbox lanes`.

use clap::Args;
use outbox::{Database, operations};

use crate::{failure::Result, filter, session::Session, table::Table, text};

pub(crate) const JSON: &str = "\
The filters select lanes by the record at their head, behind which the others wait.

JSON, one object per line: key, handler, record_id, status, attempt, error, due_in_seconds (all of the head), waiting (how many
deliveries wait behind the head).";

#[derive(Debug, Args)]
pub(crate) struct LaneArguments {
    /// Select by the status of the delivery at the head
    #[arg(long, value_parser = filter::status_among(&[filter::RETRYING, filter::FAILED]))]
    status: Option<operations::Status>,
    #[command(flatten)]
    filter: filter::FilterArguments,
    /// How many lanes to list, from 1 to 1000
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

impl<Db: Database> Session<'_, Db> {
    pub(crate) async fn lanes(&self, arguments: &LaneArguments) -> Result {
        let filter = arguments.filter.with_status(arguments.status);
        let lanes = self.operations.blocked_lanes_of(&filter, arguments.limit);
        self.output.list(&lanes.await?, table, "no lane is blocked")
    }
}

pub(crate) fn table(lanes: &[operations::BlockedLane]) -> Option<String> {
    Table::of(lanes)
        .column(">waiting", |lane| text::number(lane.waiting))
        .column("key", |lane| text::shortened(&lane.key, 30))
        .column("handler", |lane| text::shortened(&lane.handler, 30))
        .column(">record", |lane| lane.record_id)
        .column("status", |lane| lane.status)
        .column(">attempt", |lane| lane.attempt)
        .column("due in", |lane| {
            lane.due_in.map(text::duration).unwrap_or_default()
        })
        .column("error", |lane| {
            text::shortened(lane.error.as_deref().unwrap_or_default(), 40)
        })
        .text()
}
