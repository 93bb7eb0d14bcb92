//! `outbox migrate`.

use outbox::{Database, operations::Tables};
use serde::Serialize;

use crate::{arguments::MigrateArguments, failure::Failure, output::Output, target::check_version};

/// `{"from": 0, "to": 1, "dry_run": false}`.
#[derive(Serialize)]
struct Shape {
    from: i64,
    to: i64,
    dry_run: bool,
}

/// `{"version": 1, "sql": ".."}`.
#[derive(Serialize)]
struct Printed<'a> {
    version: i64,
    sql: &'a str,
}

pub(crate) async fn run<Db: Database>(
    tables: &Tables<Db>,
    arguments: &MigrateArguments,
    output: Output,
) -> Result<(), Failure> {
    let to = tables.newest_schema_version();
    if arguments.print {
        let sql = tables.schema_sql();
        let printed = Printed {
            version: to,
            sql: &sql,
        };
        return output.either(&printed, sql.trim_end());
    }
    let from = if arguments.dry_run {
        check_version(tables).await?;
        tables.schema_version().await?.unwrap_or(0)
    } else {
        tables.migrate().await?
    };
    let text = match (from == to, arguments.dry_run) {
        (true, _) => format!("the outbox tables are up to date, at version {to}"),
        (false, true) => format!(
            "would bring the outbox tables from version {from} to {to}; nothing was changed"
        ),
        (false, false) => format!("brought the outbox tables from version {from} to {to}"),
    };
    let shape = Shape {
        from,
        to,
        dry_run: arguments.dry_run,
    };
    output.either(&shape, text)
}
