//! `outbox instances`.

use outbox::{
    Database,
    operations::{Instance, Operations},
};

use crate::{
    failure::Result,
    output::Output,
    table::Table,
    text::{age, duration, number},
};

pub(crate) const JSON: &str = "\
JSON, one object per line: id, started_at, expires_in_seconds (null: its leases have expired), partitions (how many it owns).";

pub(crate) const NONE: &str = "no instance is running: no record is delivered";

pub(crate) async fn run<Db: Database>(operations: Operations<'_, Db>, output: Output) -> Result {
    output.list(&operations.instances().await?, table, NONE)
}

pub(crate) fn table(instances: &[Instance]) -> Table {
    let lease = |left| format!("expires in {}", duration(left));
    let rows = instances.iter().map(|instance| {
        [
            instance.id.to_string(),
            number(instance.partitions),
            age(instance.started_at),
            instance.expires_in.map_or("expired".to_owned(), lease),
        ]
    });
    Table::new(["instance", ">partitions", "running for", "lease"], rows)
}
