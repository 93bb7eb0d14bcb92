//! SQLite. Times are whole microseconds since 1970.

use sqlx::{Sqlite, SqliteConnection, SqlitePool};

use super::{Database, Driver, Inserts, Migration, Names, NewRecord, as_json, migrate, trusted};
use crate::{Result, error::While as _};

/// The database's present.
const NOW: &str = "cast(unixepoch('subsec') * 1000000 as integer)";

impl Database for Sqlite {}

impl Driver for Sqlite {
    fn migrations(names: &Names) -> Vec<Migration> {
        let record = names.table("record", '"');
        // Indexes are in the schema of their table; their own name carries it, the table's does not.
        let index = |name: &str| match names.schema() {
            Some(schema) => format!("\"{schema}\".\"{}\"", names.plain(name)),
            None => format!("\"{}\"", names.plain(name)),
        };
        let table = format!("\"{}\"", names.plain("record"));
        let (pending, scheduled, dedup) = (
            index("record_pending"),
            index("record_scheduled"),
            index("record_dedup"),
        );
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
                    "create index if not exists {pending} on {table} (part, id) where status = 'pending'"
                ),
                format!(
                    "create index if not exists {scheduled} on {table} (part, due_at) where status = 'scheduled'"
                ),
                format!(
                    "create unique index if not exists {dedup} on {table} (dedup_key) where dedup_key is not null"
                ),
            ],
        }]
    }

    async fn migrate(pool: &SqlitePool, names: &Names) -> Result<i64> {
        let doing = "migrating the outbox tables";
        let schema = names.table("schema", '"');
        // `immediate`: the one writer from the start, so that nobody else migrates meanwhile.
        let mut tx = pool.begin_with("begin immediate").await.doing(doing)?;
        let sql = trusted(format!(
            "create table if not exists {schema} (version integer primary key, applied_at integer not null default ({NOW}))"
        ));
        sqlx::query(sql).execute(&mut *tx).await.doing(doing)?;
        let sql = trusted(format!("select coalesce(max(version), 0) from {schema}"));
        let found: i64 = sqlx::query_scalar(sql)
            .fetch_one(&mut *tx)
            .await
            .doing(doing)?;
        for step in migrate::missing(Self::migrations(names), found)? {
            for statement in step.statements {
                sqlx::query(trusted(statement))
                    .execute(&mut *tx)
                    .await
                    .doing(doing)?;
            }
            let sql = trusted(format!("insert into {schema} (version) values (?1)"));
            sqlx::query(sql)
                .bind(step.version)
                .execute(&mut *tx)
                .await
                .doing(doing)?;
        }
        tx.commit().await.doing(doing)?;
        Ok(found)
    }

    fn inserts(names: &Names) -> Inserts {
        let record = names.table("record", '"');
        let one = format!(
            "insert into {record} (event_id, event, version, key, part, payload, headers, max_retries, dedup_key, due_at, status)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
    coalesce({NOW} + ?10, ?11),
    case when ?10 is null and ?11 is null then 'pending' else 'scheduled' end)"
        );
        let many = format!(
            "insert into {record} (event_id, event, version, key, part, payload, headers, max_retries)
select unhex(value ->> '$.event_id'), value ->> '$.event', value ->> '$.version', value ->> '$.key',
    value ->> '$.part', value ->> '$.payload', value ->> '$.headers', value ->> '$.max_retries'
from json_each(?1) order by json_each.key"
        );
        Inserts {
            one_deduplicated: trusted(format!(
                "{one} on conflict (dedup_key) where dedup_key is not null do nothing returning id"
            )),
            one: trusted(format!("{one} returning id")),
            many: trusted(many),
        }
    }

    async fn insert(
        connection: &mut SqliteConnection,
        inserts: &Inserts,
        new: &NewRecord,
    ) -> Result<Option<i64>, sqlx::Error> {
        let sql = match new.dedup_key {
            Some(_) => &inserts.one_deduplicated,
            None => &inserts.one,
        };
        let (delay, at) = new.due.micros();
        sqlx::query_scalar(sql.clone())
            .bind(new.record.event_id)
            .bind(&new.record.event)
            .bind(i64::from(new.record.version))
            .bind(&new.record.key)
            .bind(i64::from(new.partition))
            .bind(&new.record.payload)
            .bind(new.headers())
            .bind(new.record.max_retries.map(i64::from))
            .bind(&new.dedup_key)
            .bind(delay)
            .bind(at)
            .fetch_optional(connection)
            .await
    }

    async fn insert_all(
        connection: &mut SqliteConnection,
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
