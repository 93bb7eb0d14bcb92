//! `outbox replay ID` and `outbox discard ID`.

use outbox::{
    Database,
    operations::{Change, DeliveryStatus, Inspected, Operations, RecordStatus},
};
use serde::Serialize;

use crate::{
    arguments::ChangeArguments, failure::Failure, many::Verb, output::Output, show::no_such_record,
    words::plain,
};

/// `{"record_id": 7, "handlers": ["charge-card"], "dry_run": false, "changed": true}`. No handlers:
/// the record as a whole.
#[derive(Serialize)]
struct Shape<'a> {
    record_id: i64,
    handlers: Vec<&'a str>,
    dry_run: bool,
    changed: bool,
}

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    verb: Verb,
    arguments: &ChangeArguments,
    output: Output,
) -> Result<(), Failure> {
    let handler = arguments.selection.handler.as_deref();
    for &id in &arguments.ids {
        // What is to be changed, to say so; whether it can be is decided by the change itself.
        let found = operations.inspect(id).await?;
        let found = found.ok_or_else(|| no_such_record(id))?;
        let handlers = handlers(&found, verb, handler);
        let whole = handler.is_none() && changes_whole(&found, verb);
        let change = if arguments.dry_run {
            match (handlers.is_empty() && !whole, handler) {
                (false, _) => Change::Applied,
                (true, Some(handler)) => of_handler(&found, handler),
                (true, None) => Change::Conflict(found.status.into()),
            }
        } else {
            match (verb, handler) {
                (Verb::Replay, Some(handler)) => operations.replay(id, handler).await?,
                (Verb::Replay, None) => operations.replay_record(id).await?,
                (Verb::Discard, Some(handler)) => operations.discard(id, handler).await?,
                (Verb::Discard, None) => operations.discard_record(id).await?,
            }
        };
        check(change, verb, id, handler)?;
        let did = match arguments.dry_run {
            true => format!("would {}", verb.word()),
            false => verb.past().to_owned(),
        };
        let shape = Shape {
            record_id: id,
            handlers,
            dry_run: arguments.dry_run,
            changed: !arguments.dry_run,
        };
        let of = match &*shape.handlers {
            [] => String::new(),
            handlers => format!(" for {}", plain(&handlers.join(", "))),
        };
        let nothing = if arguments.dry_run {
            "; nothing was changed"
        } else {
            ""
        };
        output.either(&shape, format_args!("{did} record {id}{of}{nothing}"))?;
    }
    Ok(())
}

/// The handlers whose deliveries it is about.
fn handlers<'a>(found: &'a Inspected, verb: Verb, only: Option<&str>) -> Vec<&'a str> {
    let can = |status| match status {
        DeliveryStatus::Failed | DeliveryStatus::Retrying => true,
        DeliveryStatus::Waiting => verb == Verb::Discard,
        _ => false,
    };
    let deliveries = found.deliveries.iter();
    deliveries
        .filter(|delivery| only.is_none_or(|only| delivery.handler == only))
        .filter(|delivery| can(delivery.status))
        .map(|delivery| &*delivery.handler)
        .collect()
}

/// Whether no handler has begun with it, and it can be changed all the same.
fn changes_whole(found: &Inspected, verb: Verb) -> bool {
    match found.status {
        RecordStatus::Scheduled => true,
        RecordStatus::Pending | RecordStatus::Unhandled => verb == Verb::Discard,
        _ => false,
    }
}

fn of_handler(found: &Inspected, handler: &str) -> Change {
    let mut deliveries = found.deliveries.iter();
    match deliveries.find(|delivery| delivery.handler == handler) {
        Some(delivery) => Change::Conflict(delivery.status.into()),
        None if found.status == RecordStatus::Split => Change::NotFound,
        None => Change::Conflict(found.status.into()),
    }
}

fn check(change: Change, verb: Verb, id: i64, handler: Option<&str>) -> Result<(), Failure> {
    let of = handler.map(|handler| format!(" for {}", plain(handler)));
    let of = of.unwrap_or_default();
    match change {
        Change::Applied => Ok(()),
        Change::Conflict(status) => Err(Failure::Refused(format!(
            "record {id}{of} is {status}, so there is nothing to {}: see `outbox show {id}`",
            verb.word()
        ))),
        _ => Err(Failure::NotFound(format!(
            "record {id} has nothing unfinished{of}: see `outbox show {id}`"
        ))),
    }
}
