//! `outbox pause` and `outbox resume`.

use clap::Args;
use outbox::{
    Database,
    operations::{Change, Operations},
};
use serde_json::json;

use crate::{
    failure::{Exit, Failure, Result},
    output::Output,
    text::printable,
};

pub(crate) const JSON: &str = "\
JSON, one object: handler, paused (after the change, or as it would be), dry_run, changed.";

#[derive(Debug, Args)]
pub(crate) struct HandlerArguments {
    /// The id of the handler
    handler: String,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn pause<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &HandlerArguments,
    output: Output,
) -> Result {
    let HandlerArguments { handler, dry_run } = arguments;
    let name = printable(handler);
    let is_paused = operations.paused().await?.contains(handler);
    if !dry_run && operations.pause(handler).await? != Change::Applied {
        let line = format!("`{name}` cannot be the id of a handler");
        return Err(Failure::new(Exit::NotFound, line));
    }
    let text = if is_paused {
        format!("{name} is already paused")
    } else if *dry_run {
        format!("would pause {name}; nothing was changed")
    } else {
        format!("paused {name}; `outbox resume {name}` resumes it")
    };
    let changed = !is_paused && !dry_run;
    let object =
        json!({ "handler": handler, "paused": true, "dry_run": dry_run, "changed": changed });
    output.print(&object, text)
}

pub(crate) async fn resume<Db: Database>(
    operations: Operations<'_, Db>,
    arguments: &HandlerArguments,
    output: Output,
) -> Result {
    let HandlerArguments { handler, dry_run } = arguments;
    let name = printable(handler);
    let paused = operations.paused().await?;
    let was_paused = if *dry_run {
        paused.contains(handler)
    } else {
        operations.resume(handler).await? == Change::Applied
    };
    if !was_paused {
        let others = if paused.is_empty() {
            "no handler is paused".to_owned()
        } else {
            format!("paused handlers: {}", printable(&paused.join(", ")))
        };
        let line = format!("`{name}` is not paused; {others}");
        return Err(Failure::new(Exit::NotFound, line));
    }
    let text = if *dry_run {
        format!("would resume {name}; nothing was changed")
    } else {
        format!("resumed {name}")
    };
    let object =
        json!({ "handler": handler, "paused": false, "dry_run": dry_run, "changed": !dry_run });
    output.print(&object, text)
}
