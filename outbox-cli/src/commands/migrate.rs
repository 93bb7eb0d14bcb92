//! `outbox migrate`.

use clap::Args;
use outbox::{Database, operations::Tables};
use serde_json::json;

use crate::{connection::check_version, failure::Result, output::Output};

pub(crate) const JSON: &str = "\
JSON, one object: from, to (versions), dry_run. With --print: version, sql.";

#[derive(Debug, Args)]
pub(crate) struct MigrateArguments {
    /// Print the statements instead of running them; does not connect to the database
    #[arg(long)]
    pub(crate) print: bool,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run<Db: Database>(
    tables: &Tables<Db>,
    arguments: &MigrateArguments,
    output: Output,
) -> Result {
    let to = tables.newest_schema_version();
    if arguments.print {
        let sql = tables.schema_sql();
        return output.print(&json!({ "version": to, "sql": sql }), sql.trim_end());
    }
    let from = if arguments.dry_run {
        check_version(tables).await?;
        tables.schema_version().await?.unwrap_or(0)
    } else {
        tables.migrate().await?
    };
    let text = if from == to {
        format!("the outbox tables are up to date (version {to})")
    } else if arguments.dry_run {
        format!("would migrate the outbox tables from version {from} to {to}; nothing was changed")
    } else {
        format!("migrated the outbox tables from version {from} to {to}")
    };
    let object = json!({ "from": from, "to": to, "dry_run": arguments.dry_run });
    output.print(&object, text)
}
