//! `outbox pause` and `outbox resume`.

use clap::Args;
use outbox::{Database, operations::Change};
use serde_json::json;

use crate::{
    failure::{Exit, Failure, Result},
    session::Session,
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

impl<Db: Database> Session<'_, Db> {
    /// Pauses the handler, or resumes it.
    pub(crate) async fn set_paused(&self, arguments: &HandlerArguments, pauses: bool) -> Result {
        let HandlerArguments { handler, dry_run } = arguments;
        let name = printable(handler);
        let paused = self.operations.paused().await?;
        let was_paused = paused.contains(handler);
        let applies = match (pauses, dry_run) {
            (_, true) => pauses || was_paused,
            (true, false) => self.operations.pause(handler).await? == Change::Applied,
            (false, false) => self.operations.resume(handler).await? == Change::Applied,
        };
        if !applies {
            let line = if pauses {
                format!("`{name}` cannot be the id of a handler")
            } else if paused.is_empty() {
                format!("`{name}` is not paused; no handler is paused")
            } else {
                let others = printable(&paused.join(", "));
                format!("`{name}` is not paused; paused handlers: {others}")
            };
            return Err(Failure::new(Exit::NotFound, line));
        }
        let text = match (pauses, dry_run) {
            (true, _) if was_paused => format!("{name} is already paused"),
            (true, true) => format!("would pause {name}; nothing was changed"),
            (true, false) => format!("paused {name}; `outbox resume {name}` resumes it"),
            (false, true) => format!("would resume {name}; nothing was changed"),
            (false, false) => format!("resumed {name}"),
        };
        let changed = !(*dry_run || pauses && was_paused);
        let object =
            json!({ "handler": handler, "paused": pauses, "dry_run": dry_run, "changed": changed });
        self.output.print(&object, text)
    }
}
