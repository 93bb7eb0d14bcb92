//! `outbox restore`.

use std::io::{self, Read as _};

use clap::Args;
use outbox::{Database, operations::Inspected};
use serde_json::json;

use crate::{
    failure::{Exit, Failure, Result},
    session::Session,
    text::{counted, printable},
};

pub(crate) const JSON: &str = "\
JSON, one object per record, one object per line: record_id, event, status, deliveries (how many), dry_run, changed.";

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// A file with the output of `outbox show ID --json`, one object per record; `-` reads the standard input
    file: String,
    /// Restore deliveries that do not block their lanes, which is possible while dispatchers run
    #[arg(long)]
    unblocked: bool,
    /// Check the records and print what would be restored; change nothing
    #[arg(long)]
    dry_run: bool,
}

impl<Db: Database> Session<'_, Db> {
    pub(crate) async fn restore(&self, arguments: &RestoreArguments) -> Result {
        let records = read(arguments)?;
        // All records are checked before the first one is written.
        for record in &records {
            self.operations.may_restore(record).await?;
        }
        let (done, note) = if arguments.dry_run {
            ("would restore", "; nothing was changed")
        } else {
            ("restored", "")
        };
        for (restored, record) in (0..).zip(&records) {
            if !arguments.dry_run {
                let result = self.operations.restore(record).await;
                result.map_err(|error| {
                    let done = format!("restored {} before the error", counted(restored, "record"));
                    Failure::from(error).after(&done)
                })?;
            }
            let (id, deliveries) = (record.record.id, record.deliveries.len());
            let count = counted(u64::try_from(deliveries).unwrap_or(u64::MAX), "delivery");
            let event = printable(&record.record.event);
            let object = json!({
                "record_id": id,
                "event": record.record.event,
                "status": record.status,
                "deliveries": deliveries,
                "dry_run": arguments.dry_run,
                "changed": !arguments.dry_run,
            });
            let text = format!(
                "{done} record {id} of {event}, {}, with {count}{note}",
                record.status
            );
            self.output.print(&object, text)?;
        }
        Ok(())
    }
}

/// The records in the file, in its order.
fn read(arguments: &RestoreArguments) -> Result<Vec<Inspected>> {
    let file = &arguments.file;
    let text = if file == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|error| {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Failed,
        };
        Failure::new(exit, format!("cannot read `{file}`: {error}"))
    })?;
    let mut records = Vec::new();
    for record in serde_json::Deserializer::from_str(&text).into_iter::<Inspected>() {
        let record = record.map_err(|error| {
            let line = format!("`{file}` is no output of `outbox show ID --json`: {error}");
            Failure::new(Exit::Failed, line)
        })?;
        records.push(if arguments.unblocked {
            record.unblocked()
        } else {
            record
        });
    }
    if records.is_empty() {
        return Err(Failure::new(
            Exit::Failed,
            format!("`{file}` has no record"),
        ));
    }
    Ok(records)
}
