//! The tables of SQLite.

use sqlx::{Sqlite, SqlitePool};

use super::NOW;
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    store::{Migration, SchemaSql, TableNames, migrate, trusted},
};

impl SchemaSql for Sqlite {
    fn migrations(names: &TableNames) -> Vec<Migration> {
        let record = names.table("record", '"');
        // Indexes are in the schema of their table; their own name carries it, the table's does not.
        let index = |name: &str| match names.schema() {
            Some(schema) => format!("\"{schema}\".\"{}\"", names.plain(name)),
            None => format!("\"{}\"", names.plain(name)),
        };
        let table = |name: &str| format!("\"{}\"", names.plain(name));
        let records = table("record");
        let (pending, scheduled, unhandled, dedup) = (
            index("record_pending"),
            index("record_scheduled"),
            index("record_unhandled"),
            index("record_dedup"),
        );
        let (delivery, deliveries) = (names.table("delivery", '"'), table("delivery"));
        let (lane, waiting, due, failed) = (
            index("delivery_lane"),
            index("delivery_waiting"),
            index("delivery_due"),
            index("delivery_failed"),
        );
        let (command, inbox) = (names.table("command", '"'), names.table("inbox", '"'));
        let (failure, instance, lease, pause) = (
            names.table("failure", '"'),
            names.table("instance", '"'),
            names.table("lease", '"'),
            names.table("pause", '"'),
        );
        let (command_created, inbox_created) = (index("command_created"), index("inbox_created"));
        let (commands, messages) = (table("command"), table("inbox"));
        vec![Migration {
            version: 1,
            statements: vec![
                // `autoincrement`: an id is never given twice, not even after its record is deleted.
                format!(
                    "create table if not exists {record} (
    id integer primary key autoincrement,
    part integer not null,
    status text not null default 'pending',
    key text not null,
    event text not null,
    version integer not null,
    event_id blob not null,
    payload text not null,
    headers text,
    max_retries integer,
    dedup_key text,
    created_at integer not null default ({NOW}),
    due_at integer,
    completed_at integer
)"
                ),
                format!(
                    "create index if not exists {pending} on {records} (part, id) where status = 'pending'"
                ),
                format!(
                    "create index if not exists {scheduled} on {records} (part, due_at) where status = 'scheduled'"
                ),
                format!(
                    "create index if not exists {unhandled} on {records} (part, event) where status = 'unhandled'"
                ),
                format!(
                    "create unique index if not exists {dedup} on {records} (dedup_key) where dedup_key is not null"
                ),
                // One row for each handler that did not finish with a record; its id is its
                // place in the lane.
                format!(
                    "create table if not exists {delivery} (
    id integer primary key autoincrement,
    record_id integer not null,
    part integer not null,
    key text not null,
    handler text not null,
    status text not null,
    blocking integer not null,
    attempt integer not null,
    failure_count integer not null,
    first_failed_at integer,
    due_at integer,
    finished_at integer,
    error text,
    error_kind text,
    fingerprint text,
    unique (record_id, handler)
)"
                ),
                format!(
                    "create index if not exists {lane} on {deliveries} (part, key, handler, id) where blocking"
                ),
                format!(
                    "create index if not exists {waiting} on {deliveries} (part, handler, id) where status = 'waiting'"
                ),
                format!(
                    "create index if not exists {due} on {deliveries} (part, due_at) where status = 'retrying'"
                ),
                format!(
                    "create index if not exists {failed} on {deliveries} (id) where status = 'failed'"
                ),
                format!(
                    "create table if not exists {failure} (
    record_id integer not null,
    handler text not null,
    attempt integer not null,
    failed_at integer not null default ({NOW}),
    kind text not null,
    fingerprint text not null,
    error text not null,
    primary key (record_id, handler, attempt)
)"
                ),
                format!(
                    "create table if not exists {instance} (
    id blob primary key,
    started_at integer not null default ({NOW}),
    expires_at integer not null
)"
                ),
                format!(
                    "create table if not exists {lease} (
    part integer primary key,
    owner blob,
    epoch integer not null default 0,
    expires_at integer
)"
                ),
                format!(
                    "create table if not exists {pause} (
    handler text primary key,
    paused_at integer not null default ({NOW})
)"
                ),
                // What was done before: the results of commands, the messages that arrived.
                format!(
                    "create table if not exists {command} (
    operation text not null,
    command_id text not null,
    fingerprint text,
    result text,
    created_at integer not null default ({NOW}),
    primary key (operation, command_id)
)"
                ),
                format!("create index if not exists {command_created} on {commands} (created_at)"),
                format!(
                    "create table if not exists {inbox} (
    source text not null,
    message_id text not null,
    created_at integer not null default ({NOW}),
    primary key (source, message_id)
)"
                ),
                format!("create index if not exists {inbox_created} on {messages} (created_at)"),
            ],
        }]
    }

    async fn migrate(pool: &SqlitePool, names: &TableNames) -> Result<i64> {
        let operation = Operation::Migrate;
        let schema = names.table("schema", '"');
        // `immediate`: the one writer from the start, so that nobody else migrates meanwhile.
        let mut tx = pool.begin_with("begin immediate").await.during(operation)?;
        let sql = trusted(format!(
            "create table if not exists {schema} (version integer primary key, applied_at integer not null default ({NOW}))"
        ));
        sqlx::query(sql).execute(&mut *tx).await.during(operation)?;
        let sql = trusted(format!("select coalesce(max(version), 0) from {schema}"));
        let found: i64 = sqlx::query_scalar(sql)
            .fetch_one(&mut *tx)
            .await
            .during(operation)?;
        for step in migrate::missing(Self::migrations(names), found)? {
            for statement in step.statements {
                sqlx::query(trusted(statement))
                    .execute(&mut *tx)
                    .await
                    .during(operation)?;
            }
            let sql = trusted(format!("insert into {schema} (version) values (?1)"));
            sqlx::query(sql)
                .bind(step.version)
                .execute(&mut *tx)
                .await
                .during(operation)?;
        }
        tx.commit().await.during(operation)?;
        Ok(found)
    }
}
