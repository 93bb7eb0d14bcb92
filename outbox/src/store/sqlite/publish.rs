//! Publishing into SQLite.

use sqlx::{Sqlite, SqliteConnection};

use super::NOW;
use crate::store::{NewRecord, PublishSql, PublishStatements, TableNames, as_json, trusted};

impl PublishSql for Sqlite {
    fn inserts(names: &TableNames) -> PublishStatements {
        let record = names.table("record", '"');
        let one = format!(
            "insert into {record} (event_id, event, version, key, part, payload, headers, max_retries, dedup_key, due_at, status)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
    coalesce({NOW} + ?10, ?11),
    case when ?10 is null and ?11 is null then 'pending' else 'scheduled' end)"
        );
        let many = format!(
            "insert into {record} (event_id, event, version, key, part, payload, headers, max_retries)
select unhex(value ->> 0), ?2, ?3, value ->> 1, value ->> 2, value ->> 3, ?4, ?5
from json_each(?1) order by json_each.key"
        );
        PublishStatements {
            one_deduplicated: trusted(format!(
                "{one} on conflict (dedup_key) where dedup_key is not null do nothing returning id"
            )),
            one: trusted(format!("{one} returning id")),
            many: trusted(many),
        }
    }

    async fn insert(
        connection: &mut SqliteConnection,
        inserts: &PublishStatements,
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
        inserts: &PublishStatements,
        new: &[NewRecord],
    ) -> Result<(), sqlx::Error> {
        let Some(each) = new.first() else {
            return Ok(());
        };
        sqlx::query(inserts.many.clone())
            .bind(as_json(new)?)
            .bind(&each.record.event)
            .bind(i64::from(each.record.version))
            .bind(each.headers())
            .bind(each.record.max_retries.map(i64::from))
            .execute(connection)
            .await?;
        Ok(())
    }

    #[cfg(feature = "testing")]
    async fn stamp(
        connection: &mut SqliteConnection,
        names: &TableNames,
        event_id: uuid::Uuid,
        at: i64,
    ) -> Result<(), sqlx::Error> {
        super::testing::stamp(connection, names, event_id, at).await
    }
}
