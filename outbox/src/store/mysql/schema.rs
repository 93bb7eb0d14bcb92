//! The tables of MySQL.

use sqlx::{Connection as _, MySql, MySqlPool};

use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    store::{Migration, SchemaSql, TableNames, migrate, trusted},
};

impl SchemaSql for MySql {
    fn migrations(names: &TableNames) -> Vec<Migration> {
        let record = names.table("record", '`');
        let index = |name: &str| format!("`{}`", names.plain(name));
        let (pending, scheduled, dedup) = (
            index("record_pending"),
            index("record_scheduled"),
            index("record_dedup"),
        );
        let delivery = names.table("delivery", '`');
        // Those that failed are found by the index of those that wait.
        let (lane, waiting, due) = (
            index("delivery_lane"),
            index("delivery_waiting"),
            index("delivery_due"),
        );
        let (command, inbox) = (names.table("command", '`'), names.table("inbox", '`'));
        let (failure, instance, lease, pause) = (
            names.table("failure", '`'),
            names.table("instance", '`'),
            names.table("lease", '`'),
            names.table("pause", '`'),
        );
        let (command_created, inbox_created) = (index("command_created"), index("inbox_created"));
        vec![Migration {
            version: 1,
            // Keys are bytes: no collation takes two of them for the same. There are no partial
            // indexes, so each begins with what tells its rows from the others. Unhandled records
            // have none of their own: every record would pay for it, and they are rarely asked for.
            statements: vec![
                format!(
                    "create table if not exists {record} (
    id bigint not null auto_increment primary key,
    part smallint not null,
    status enum('pending', 'scheduled', 'unhandled', 'split', 'completed', 'discarded') not null default 'pending',
    `key` varbinary(255) not null,
    event varchar(255) not null,
    version bigint not null,
    event_id binary(16) not null,
    payload longtext not null,
    headers mediumtext,
    max_retries bigint,
    dedup_key varbinary(255),
    created_at datetime(6) not null,
    due_at datetime(6),
    completed_at datetime(6),
    index {pending} (status, part, id),
    index {scheduled} (status, part, due_at),
    unique index {dedup} (dedup_key)
) engine = innodb character set utf8mb4 collate utf8mb4_bin"
                ),
                // One row for each handler that did not finish with a record; its id is its
                // place in the lane.
                format!(
                    "create table if not exists {delivery} (
    id bigint not null auto_increment primary key,
    record_id bigint not null,
    part smallint not null,
    `key` varbinary(255) not null,
    handler varchar(255) not null,
    status enum('waiting', 'retrying', 'failed', 'completed', 'discarded') not null,
    blocking boolean not null,
    attempt bigint not null,
    failure_count bigint not null,
    first_failed_at datetime(6),
    due_at datetime(6),
    finished_at datetime(6),
    error longtext,
    error_kind varchar(255),
    fingerprint varchar(255),
    unique (record_id, handler),
    index {lane} (blocking, part, `key`, handler, id),
    index {waiting} (status, id),
    index {due} (status, part, due_at)
) engine = innodb character set utf8mb4 collate utf8mb4_bin"
                ),
                format!(
                    "create table if not exists {failure} (
    record_id bigint not null,
    handler varchar(255) not null,
    attempt bigint not null,
    failed_at datetime(6) not null,
    kind varchar(255) not null,
    fingerprint varchar(255) not null,
    error longtext not null,
    primary key (record_id, handler, attempt)
) engine = innodb character set utf8mb4 collate utf8mb4_bin"
                ),
                format!(
                    "create table if not exists {instance} (
    id binary(16) primary key,
    session varchar(64),
    wary boolean not null default false,
    started_at datetime(6) not null,
    expires_at datetime(6) not null
) engine = innodb character set utf8mb4 collate utf8mb4_bin"
                ),
                format!(
                    "create table if not exists {lease} (
    part smallint primary key,
    owner binary(16),
    epoch bigint not null default 0,
    expires_at datetime(6)
) engine = innodb"
                ),
                format!(
                    "create table if not exists {pause} (
    handler varchar(255) primary key,
    paused_at datetime(6) not null
) engine = innodb character set utf8mb4 collate utf8mb4_bin"
                ),
                // What was done before: the results of commands, the messages that arrived.
                format!(
                    "create table if not exists {command} (
    operation varbinary(255) not null,
    command_id varbinary(255) not null,
    fingerprint varchar(255),
    result longtext,
    created_at datetime(6) not null,
    primary key (operation, command_id),
    index {command_created} (created_at)
) engine = innodb character set utf8mb4 collate utf8mb4_bin"
                ),
                format!(
                    "create table if not exists {inbox} (
    source varbinary(255) not null,
    message_id varbinary(255) not null,
    receipt binary(16) not null,
    created_at datetime(6) not null,
    primary key (source, message_id),
    index {inbox_created} (created_at)
) engine = innodb character set utf8mb4 collate utf8mb4_bin"
                ),
            ],
        }]
    }

    async fn migrate(pool: &MySqlPool, names: &TableNames) -> Result<i64> {
        let operation = Operation::Migrate;
        let schema = names.table("schema", '`');
        // Data definition ends transactions here, so the lock is the session's; out of the pool,
        // so that the session, and the lock with it, ends when this future is dropped.
        let mut session = pool.acquire().await.during(operation)?.detach();
        let lock: Option<i64> = sqlx::query_scalar(
            "select get_lock(concat('outbox-', md5(concat(database(), ?))), 60)",
        )
        .bind(names.to_string())
        .fetch_one(&mut session)
        .await
        .during(operation)?;
        if lock != Some(1) {
            let busy = "another process has been migrating for 60 s, or is stuck";
            return Err(sqlx::Error::Protocol(busy.to_owned())).during(operation);
        }
        if let Some(schema) = names.schema() {
            let sql = trusted(format!("create schema if not exists `{schema}`"));
            sqlx::query(sql)
                .execute(&mut session)
                .await
                .during(operation)?;
        }
        let sql = trusted(format!(
            "create table if not exists {schema} (version bigint primary key, applied_at datetime(6) not null) engine = innodb"
        ));
        sqlx::query(sql)
            .execute(&mut session)
            .await
            .during(operation)?;
        let sql = trusted(format!("select coalesce(max(version), 0) from {schema}"));
        let found: i64 = sqlx::query_scalar(sql)
            .fetch_one(&mut session)
            .await
            .during(operation)?;
        for step in migrate::missing(Self::migrations(names), found)? {
            for statement in step.statements {
                sqlx::query(trusted(statement))
                    .execute(&mut session)
                    .await
                    .during(operation)?;
            }
            let sql = trusted(format!(
                "insert into {schema} (version, applied_at) values (?, utc_timestamp(6))"
            ));
            sqlx::query(sql)
                .bind(step.version)
                .execute(&mut session)
                .await
                .during(operation)?;
        }
        session.close().await.during(operation)?;
        Ok(found)
    }
}
