//! `outbox instances`.

use outbox::{Database, operations::Instance};

use crate::{failure::Result, session::Session, table::Table, text};

pub(crate) const JSON: &str = "\
JSON, one object per line: id, started_at, expires_in_seconds (null: its leases have expired), partitions (how many it owns).";

pub(crate) const NONE: &str = "no instance is running: no record is delivered";

impl<Db: Database> Session<'_, Db> {
    pub(crate) async fn instances(&self) -> Result {
        let instances = self.operations.instances().await?;
        self.output.list(&instances, table, NONE)
    }
}

pub(crate) fn table(instances: &[Instance]) -> Option<String> {
    let lease = |left| format!("expires in {}", text::duration(left));
    Table::of(instances)
        .column("instance", |instance| instance.id)
        .column(">partitions", |instance| text::number(instance.partitions))
        .column("running for", |instance| text::age(instance.started_at))
        .column("lease", |instance| {
            instance.expires_in.map_or("expired".to_owned(), lease)
        })
        .text()
}
