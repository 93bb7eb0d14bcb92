//! `outbox replay` and `outbox discard`: all that a filter selects, batch by batch.

use outbox::{
    Database,
    operations::{DeliveryStatus, Filter, Operations, Paging, Status},
};
use serde::Serialize;

use crate::{
    arguments::ChangeArguments,
    failure::Failure,
    interrupt::Interrupt,
    list, one,
    output::Output,
    progress::Progress,
    select::StatusName,
    shape::ListedShape,
    words::{count, counted},
};

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Replay,
    Discard,
}

/// `{"changed": 7, "interrupted": false}`.
#[derive(Serialize)]
pub(crate) struct Changed {
    pub(crate) changed: u64,
    pub(crate) interrupted: bool,
}

/// `{"dry_run": true, "would_change": 7, "items": [..]}`, with the first of them.
#[derive(Serialize)]
struct Preview<'a> {
    dry_run: bool,
    would_change: u64,
    items: Vec<ListedShape<'a>>,
}

impl Verb {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Discard => "discard",
        }
    }

    pub(crate) fn past(self) -> &'static str {
        match self {
            Self::Replay => "replayed",
            Self::Discard => "discarded",
        }
    }

    /// What can be changed so.
    fn statuses(self) -> &'static [StatusName] {
        use StatusName::{Failed, Pending, Retrying, Scheduled, Unhandled, Waiting};
        match self {
            Self::Replay => &[Failed, Retrying, Scheduled],
            Self::Discard => &[Failed, Retrying, Waiting, Pending, Scheduled, Unhandled],
        }
    }

    fn check(self, status: Option<StatusName>) -> Result<(), Failure> {
        let Some(status) = status.filter(|status| !self.statuses().contains(status)) else {
            return Ok(());
        };
        let can: Vec<String> = self
            .statuses()
            .iter()
            .map(|status| status.status().to_string())
            .collect();
        Err(Failure::Usage(format!(
            "what is {} cannot be {}: --status takes {} here",
            status.status(),
            self.past(),
            can.join(", ")
        )))
    }
}

pub(crate) async fn run<Db: Database>(
    operations: Operations<'_, Db>,
    verb: Verb,
    arguments: &ChangeArguments,
    output: Output,
) -> Result<(), Failure> {
    if !arguments.ids.is_empty() {
        return one::run(operations, verb, arguments, output).await;
    }
    if arguments.selection.is_empty() && !arguments.all {
        return Err(Failure::Usage(format!(
            "{} what? Give the ID of a record, a filter such as --handler, or --all",
            verb.word()
        )));
    }
    verb.check(arguments.selection.status)?;
    let mut filter = arguments.selection.filter();
    let status = arguments.selection.status.map(StatusName::status);
    let status = status.unwrap_or(Status::Delivery(DeliveryStatus::Failed));
    filter = filter.status(status);
    let what = match status {
        Status::Delivery(_) => "delivery",
        _ => "record",
    };
    if arguments.dry_run {
        return preview(operations, verb, &filter, what, arguments.limit, output).await;
    }

    let total = match Progress::is_seen() {
        true => Some(operations.count(&filter).await?),
        false => None,
    };
    let interrupt = Interrupt::listen();
    let mut progress = Progress::new(verb.past(), total);
    let bulk = match verb {
        Verb::Replay => operations.replaying(&filter),
        Verb::Discard => operations.discarding(&filter),
    };
    let mut bulk = bulk.batch_size(arguments.batch_size);
    let mut changed = 0;
    let interrupted = loop {
        if interrupt.came() {
            break true;
        }
        match bulk.next().await {
            Ok(Some(more)) => changed += more,
            Ok(None) => break false,
            Err(error) => {
                progress.end();
                let done = format!(
                    "{} before that; the same command goes on with the rest",
                    what_was_done(verb, changed, what)
                );
                return Err(Failure::After(done, Box::new(error.into())));
            }
        }
        progress.show(changed);
    };
    progress.end();
    let object = Changed {
        changed,
        interrupted,
    };
    output.either(&object, what_was_done(verb, changed, what))?;
    if !interrupted {
        return Ok(());
    }
    let left = operations.count(&filter).await?;
    Err(Failure::Interrupted(format!(
        "interrupted: {}, {} left; the same command goes on with them",
        what_was_done(verb, changed, what),
        count(left)
    )))
}

fn what_was_done(verb: Verb, changed: u64, what: &str) -> String {
    format!("{} {}", verb.past(), counted(changed, what))
}

async fn preview<Db: Database>(
    operations: Operations<'_, Db>,
    verb: Verb,
    filter: &Filter,
    what: &str,
    limit: u32,
    output: Output,
) -> Result<(), Failure> {
    let all = operations.count(filter).await?;
    let page = operations.list(filter, Paging::oldest(limit)).await?;
    if output.is_json() {
        return output.object(&Preview {
            dry_run: true,
            would_change: all,
            items: page.items.iter().map(Into::into).collect(),
        });
    }
    output.line(format_args!(
        "would {} {}; nothing was changed",
        verb.word(),
        counted(all, what)
    ))?;
    if page.items.is_empty() {
        return Ok(());
    }
    output.line(list::table(&page.items))?;
    let named = u64::try_from(page.items.len()).unwrap_or(u64::MAX);
    match all.saturating_sub(named) {
        0 => Ok(()),
        more => output.line(format_args!(".. and {} more", count(more))),
    }
}
