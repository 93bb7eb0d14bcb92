//! `outbox migrate`.

use clap::Args;
use outbox::Database;
use serde_json::json;

use crate::{failure::Result, session::Session};

pub(crate) const JSON: &str = "\
JSON, one object: from, to (versions), dry_run. With --print: version, sql.";

#[derive(Debug, Args)]
pub(crate) struct MigrateArguments {
    /// Print the statements instead of running them; does not connect to the database
    #[arg(long)]
    pub(crate) print: bool,
    /// The number of partitions of new tables, and the largest number of instances that share the work
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=512))]
    pub(crate) partitions: u16,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl<Db: Database> Session<'_, Db> {
    pub(crate) async fn migrate(&self, arguments: &MigrateArguments) -> Result {
        let tables = self.tables.clone().partitions(arguments.partitions)?;
        let to = tables.newest_schema_version();
        if arguments.print {
            let sql = tables.schema_sql();
            let object = json!({ "version": to, "sql": sql });
            return self.output.print(&object, sql.trim_end());
        }
        let from = if arguments.dry_run {
            tables.schema_version().await?.unwrap_or(0)
        } else {
            tables.migrate().await?
        };
        let text = if from == to {
            format!("the outbox tables are up to date (version {to})")
        } else if arguments.dry_run {
            format!(
                "would migrate the outbox tables from version {from} to {to}; nothing was changed"
            )
        } else {
            format!("migrated the outbox tables from version {from} to {to}")
        };
        let object = json!({ "from": from, "to": to, "dry_run": arguments.dry_run });
        self.output.print(&object, text)
    }
}
