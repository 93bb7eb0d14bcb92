//! `outbox list`.

use outbox::{
    Database,
    operations::{Listed, Operations, Paging},
};

use crate::{
    arguments::ListArguments,
    failure::Failure,
    output::Output,
    shape::ListedShape,
    table::Table,
    words::{ago, short},
};

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &ListArguments,
    output: Output,
) -> Result<(), Failure> {
    let mut paging = match arguments.oldest {
        true => Paging::oldest(arguments.limit),
        false => Paging::newest(arguments.limit),
    };
    if let Some(cursor) = arguments.after {
        paging = paging.after(cursor);
    }
    let page = operations
        .list(&arguments.selection.filter(), paging)
        .await?;
    if output.is_json() {
        for item in &page.items {
            output.object(&ListedShape::from(item))?;
        }
    } else if page.items.is_empty() {
        output.line("there is none")?;
    } else {
        output.line(table(&page.items))?;
    }
    // Not among the lines: those are for whoever reads records.
    if let Some(next) = page.next {
        eprintln!("there are more: --after {next}");
    }
    Ok(())
}

/// Records, or deliveries.
pub(crate) fn table(items: &[Listed]) -> Table {
    if items.iter().any(|item| item.delivery.is_some()) {
        return deliveries(items);
    }
    let mut table = Table::new([">record", "status", "event", "key", "age"]);
    for item in items {
        table.row([
            item.record_id.to_string(),
            item.status.to_string(),
            short(&item.event, 40),
            short(&item.key, 40),
            ago(item.created_at),
        ]);
    }
    table
}

fn deliveries(items: &[Listed]) -> Table {
    let mut table = Table::new([
        ">record", "status", "event", "key", "handler", ">attempt", "age", "error",
    ]);
    for item in items {
        let Some(delivery) = &item.delivery else {
            continue;
        };
        table.row([
            item.record_id.to_string(),
            delivery.status.to_string(),
            short(&item.event, 30),
            short(&item.key, 30),
            short(&delivery.handler, 30),
            delivery.attempt.to_string(),
            ago(item.created_at),
            short(delivery.error.as_deref().unwrap_or_default(), 50),
        ]);
    }
    table
}
