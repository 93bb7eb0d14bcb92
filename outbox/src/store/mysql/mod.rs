//! MySQL 8.0 and MariaDB 10.6. Times are in UTC, whatever the session's time zone is.

use sqlx::{Connection as _, MySql, MySqlConnection, MySqlPool};

use super::{Database, Driver, Inserts, Migration, Names, NewRecord, as_json, migrate, trusted};
use crate::{Result, error::While as _};

impl Database for MySql {}

impl Driver for MySql {
    fn migrations(names: &Names) -> Vec<Migration> {
        let record = names.table("record", '`');
        let index = |name: &str| format!("`{}`", names.plain(name));
        let (pending, scheduled, dedup) = (
            index("record_pending"),
            index("record_scheduled"),
            index("record_dedup"),
        );
        vec![Migration {
            version: 1,
            // Keys are bytes: no collation takes two of them for the same.
            statements: vec![format!(
                "create table if not exists {record} (
    id bigint not null auto_increment primary key,
    part smallint not null,
    status enum('pending', 'scheduled', 'completed', 'failed') not null default 'pending',
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
            )],
        }]
    }

    async fn migrate(pool: &MySqlPool, names: &Names) -> Result<i64> {
        let doing = "migrating the outbox tables";
        let schema = names.table("schema", '`');
        // Data definition ends transactions here, so the lock is the session's; out of the pool,
        // so that the session, and the lock with it, ends when this future is dropped.
        let mut session = pool.acquire().await.doing(doing)?.detach();
        let lock: Option<i64> = sqlx::query_scalar(
            "select get_lock(concat('outbox-', md5(concat(database(), ?))), 60)",
        )
        .bind(names.to_string())
        .fetch_one(&mut session)
        .await
        .doing(doing)?;
        if lock != Some(1) {
            let busy = "another process has been migrating for 60 s, or is stuck";
            return Err(sqlx::Error::Protocol(busy.to_owned())).doing(doing);
        }
        if let Some(schema) = names.schema() {
            let sql = trusted(format!("create schema if not exists `{schema}`"));
            sqlx::query(sql).execute(&mut session).await.doing(doing)?;
        }
        let sql = trusted(format!(
            "create table if not exists {schema} (version bigint primary key, applied_at datetime(6) not null) engine = innodb"
        ));
        sqlx::query(sql).execute(&mut session).await.doing(doing)?;
        let sql = trusted(format!("select coalesce(max(version), 0) from {schema}"));
        let found: i64 = sqlx::query_scalar(sql)
            .fetch_one(&mut session)
            .await
            .doing(doing)?;
        for step in migrate::missing(Self::migrations(names), found)? {
            for statement in step.statements {
                sqlx::query(trusted(statement))
                    .execute(&mut session)
                    .await
                    .doing(doing)?;
            }
            let sql = trusted(format!(
                "insert into {schema} (version, applied_at) values (?, utc_timestamp(6))"
            ));
            sqlx::query(sql)
                .bind(step.version)
                .execute(&mut session)
                .await
                .doing(doing)?;
        }
        session.close().await.doing(doing)?;
        Ok(found)
    }

    fn inserts(names: &Names) -> Inserts {
        let record = names.table("record", '`');
        let one = format!(
            "into {record} (event_id, event, version, `key`, part, payload, headers, max_retries, dedup_key, created_at, due_at, status)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, utc_timestamp(6),
    coalesce(utc_timestamp(6) + interval ? microsecond, timestamp('1970-01-01') + interval ? microsecond),
    if(due_at is null, 'pending', 'scheduled'))"
        );
        // Without their own character set, the columns have the database's, which may be `latin1`.
        let many = format!(
            "insert into {record} (event_id, event, version, `key`, part, payload, headers, max_retries, created_at)
select unhex(r.event_id), r.event, r.version, r.record_key, r.part, r.payload, r.headers, r.max_retries, utc_timestamp(6)
from json_table(?, '$[*]' columns (
    place for ordinality,
    event_id char(32) path '$.event_id',
    event varchar(255) character set utf8mb4 path '$.event',
    version bigint path '$.version',
    record_key varchar(255) character set utf8mb4 path '$.key',
    part smallint path '$.part',
    payload longtext character set utf8mb4 path '$.payload',
    headers longtext character set utf8mb4 path '$.headers',
    max_retries bigint path '$.max_retries'
)) as r order by r.place"
        );
        Inserts {
            // What `ignore` would hide besides a duplicate was checked before.
            one_deduplicated: trusted(format!("insert ignore {one}")),
            one: trusted(format!("insert {one}")),
            many: trusted(many),
        }
    }

    async fn insert(
        connection: &mut MySqlConnection,
        inserts: &Inserts,
        new: &NewRecord,
    ) -> Result<Option<i64>, sqlx::Error> {
        let sql = match new.dedup_key {
            Some(_) => &inserts.one_deduplicated,
            None => &inserts.one,
        };
        let (delay, at) = new.due.micros();
        let done = sqlx::query(sql.clone())
            .bind(new.record.event_id)
            .bind(&new.record.event)
            .bind(i64::from(new.record.version))
            .bind(new.record.key.as_bytes())
            .bind(new.partition.cast_signed())
            .bind(&new.record.payload)
            .bind(new.headers())
            .bind(new.record.max_retries.map(i64::from))
            .bind(new.dedup_key.as_ref().map(String::as_bytes))
            .bind(delay)
            .bind(at)
            .execute(connection)
            .await?;
        Ok((done.rows_affected() > 0).then(|| done.last_insert_id().cast_signed()))
    }

    async fn insert_all(
        connection: &mut MySqlConnection,
        inserts: &Inserts,
        new: &[NewRecord],
    ) -> Result<(), sqlx::Error> {
        sqlx::query(inserts.many.clone())
            .bind(as_json(new)?)
            .execute(connection)
            .await?;
        Ok(())
    }
}
