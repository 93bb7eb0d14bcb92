//! `outbox replay ID` and `outbox discard ID`.

use outbox::{
    Database,
    operations::{Change, Inspected, RecordStatus},
};
use serde_json::json;

use super::change::{ChangeArguments, REPLAY, Verb};
use crate::{
    failure::{Exit, Failure, Result},
    session::Session,
    text::printable,
};

impl<Db: Database> Session<'_, Db> {
    pub(super) async fn change_by_id(&self, verb: Verb, arguments: &ChangeArguments) -> Result {
        let handler = arguments.filter.handler.as_deref();
        let is_replay = verb == REPLAY;
        let (done, note) = if arguments.dry_run {
            (format!("would {}", verb.word), "; nothing was changed")
        } else {
            (verb.past.to_owned(), "")
        };
        for &id in &arguments.ids {
            // The handlers are only printed. The change itself decides whether it applies.
            let record = self.inspect(id).await?;
            let handlers = changeable(&record, verb, handler);
            let change = match handler {
                _ if arguments.dry_run => predict(&record, verb, handler),
                Some(handler) if is_replay => self.operations.replay(id, handler).await?,
                Some(handler) => self.operations.discard(id, handler).await?,
                None if is_replay => self.operations.replay_record(id).await?,
                None => self.operations.discard_record(id).await?,
            };
            check(change, verb, id, handler)?;
            let text = format!("{done} record {id}{}{note}", to(&handlers));
            let object = json!({
                "record_id": id,
                "handlers": handlers,
                "dry_run": arguments.dry_run,
                "changed": !arguments.dry_run,
            });
            self.output.print(&object, text)?;
        }
        Ok(())
    }
}

/// The handlers whose deliveries would change.
fn changeable<'a>(record: &'a Inspected, verb: Verb, handler: Option<&str>) -> Vec<&'a str> {
    let deliveries = record.deliveries.iter();
    deliveries
        .filter(|delivery| handler.is_none_or(|handler| delivery.handler == handler))
        .filter(|delivery| verb.statuses.contains(&delivery.status.into()))
        .map(|delivery| &*delivery.handler)
        .collect()
}

/// What a change would return.
fn predict(record: &Inspected, verb: Verb, handler: Option<&str>) -> Change {
    let changes_record = handler.is_none() && verb.statuses.contains(&record.status.into());
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
    let to = to(handler.as_slice());
    let (exit, line) = match change {
        Change::Applied => return Ok(()),
        Change::Conflict(status) => {
            let line = format!("record {id}{to} is {status} and cannot be {}", verb.past);
            (Exit::Failed, line)
        }
        _ => (Exit::NotFound, format!("record {id} has no delivery{to}")),
    };
    Err(Failure::new(
        exit,
        format!("{line}: see `outbox show {id}`"),
    ))
}

/// ` for charge-card, send-mail`, or nothing for the whole record.
fn to(handlers: &[&str]) -> String {
    if handlers.is_empty() {
        return String::new();
    }
    format!(" for {}", printable(&handlers.join(", ")))
}
