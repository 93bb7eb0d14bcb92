//! `outbox instances`.

use outbox::{
    Database,
    operations::{Instance, Operations},
};

use crate::{
    failure::Failure,
    output::Output,
    shape::InstanceShape,
    table::Table,
    words::{ago, count, span},
};

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    output: Output,
) -> Result<(), Failure> {
    let instances = operations.instances().await?;
    if output.is_json() {
        return instances
            .iter()
            .try_for_each(|instance| output.object(&InstanceShape::from(instance)));
    }
    if instances.is_empty() {
        return output.line("no instance is running: nothing is delivered");
    }
    output.line(table(&instances))
}

pub(crate) fn table(instances: &[Instance]) -> Table {
    let mut table = Table::new(["instance", ">partitions", "running for", "lease"]);
    for instance in instances {
        let lease = instance.expires_in.map_or_else(
            || "has run out".to_owned(),
            |left| format!("for {}", span(left)),
        );
        table.row([
            instance.id.to_string(),
            count(instance.partitions),
            ago(instance.started_at),
            lease,
        ]);
    }
    table
}
