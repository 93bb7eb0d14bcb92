//! `outbox replay ID` and `outbox discard ID`.

use outbox::{
    Database,
    operations::{Change, Inspected, Operations, RecordStatus},
};
use serde_json::json;

use super::{
    change::{ChangeArguments, Verb},
    show::no_such_record,
};
use crate::{
    failure::{Exit, Failure, Result},
    output::Output,
    text::printable,
};

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    verb: Verb,
    arguments: &ChangeArguments,
    output: Output,
) -> Result {
    let handler = arguments.filter.handler.as_deref();
    let (verb_text, note) = if arguments.dry_run {
        (format!("would {}", verb.word()), "; nothing was changed")
    } else {
        (verb.past().to_owned(), "")
    };
    for &id in &arguments.ids {
        // The handlers are only printed. The change itself decides whether it applies.
        let record = operations.inspect(id).await?;
        let record = record.ok_or_else(|| no_such_record(id))?;
        let handlers = changeable(&record, verb, handler);
        let change = match (verb, handler) {
            _ if arguments.dry_run => predict(&record, verb, handler),
            (Verb::Replay, Some(handler)) => operations.replay(id, handler).await?,
            (Verb::Replay, None) => operations.replay_record(id).await?,
            (Verb::Discard, Some(handler)) => operations.discard(id, handler).await?,
            (Verb::Discard, None) => operations.discard_record(id).await?,
        };
        check(change, verb, id, handler)?;
        let text = format!("{verb_text} record {id}{}{note}", to(&handlers));
        let object = json!({
            "record_id": id,
            "handlers": handlers,
            "dry_run": arguments.dry_run,
            "changed": !arguments.dry_run,
        });
        output.print(&object, text)?;
    }
    Ok(())
}

/// The handlers whose deliveries would change.
fn changeable<'a>(record: &'a Inspected, verb: Verb, handler: Option<&str>) -> Vec<&'a str> {
    let deliveries = record.deliveries.iter();
    deliveries
        .filter(|delivery| handler.is_none_or(|handler| delivery.handler == handler))
        .filter(|delivery| verb.applies_to(delivery.status))
        .map(|delivery| &*delivery.handler)
        .collect()
}

/// What a change would return.
fn predict(record: &Inspected, verb: Verb, handler: Option<&str>) -> Change {
    let changes_record = handler.is_none() && verb.applies_to(record.status);
    if changes_record || !changeable(record, verb, handler).is_empty() {
        return Change::Applied;
    }
    let mut deliveries = record.deliveries.iter();
    let delivery = deliveries.find(|delivery| Some(&*delivery.handler) == handler);
    match delivery {
        Some(delivery) => Change::Conflict(delivery.status.into()),
        None if handler.is_some() && record.status == RecordStatus::Split => Change::NotFound,
        None => Change::Conflict(record.status.into()),
    }
}

fn check(change: Change, verb: Verb, id: i64, handler: Option<&str>) -> Result {
    let handler: Vec<&str> = handler.into_iter().collect();
    let to = to(&handler);
    match change {
        Change::Applied => Ok(()),
        Change::Conflict(status) => Err(Failure::new(
            Exit::Failed,
            format!(
                "record {id}{to} is {status} and cannot be {}: see `outbox show {id}`",
                verb.past()
            ),
        )),
        _ => Err(Failure::new(
            Exit::NotFound,
            format!("record {id} has no delivery{to}: see `outbox show {id}`"),
        )),
    }
}

/// ` for charge-card, send-mail`, or nothing for the whole record.
fn to(handlers: &[&str]) -> String {
    if handlers.is_empty() {
        return String::new();
    }
    format!(" for {}", printable(&handlers.join(", ")))
}
