//! Publishing into SQLite.

use sqlx::{Sqlite, SqliteConnection};

use super::SqliteStatements;
use crate::store::{NewRecord, PublishSql, as_json};

impl PublishSql for Sqlite {
    async fn insert(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        new: &NewRecord,
    ) -> Result<Option<i64>, sqlx::Error> {
        let statement = match new.dedup_key {
            Some(_) => &sql.insert_deduplicated,
            None => &sql.insert,
        };
        let (delay, at) = new.due.micros();
        sqlx::query_scalar(statement.clone())
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
        sql: &SqliteStatements,
        new: &[NewRecord],
    ) -> Result<(), sqlx::Error> {
        let Some(each) = new.first() else {
            return Ok(());
        };
        sqlx::query(sql.insert_all.clone())
            .bind(as_json(new)?)
            .bind(&each.record.event)
            .bind(i64::from(each.record.version))
            .bind(each.headers())
            .bind(each.record.max_retries.map(i64::from))
            .execute(connection)
            .await
            .map(drop)
    }

    #[cfg(feature = "testing")]
    async fn stamp(
        connection: &mut SqliteConnection,
        names: &crate::store::TableNames,
        event_id: uuid::Uuid,
        at: i64,
    ) -> Result<(), sqlx::Error> {
        super::testing::stamp(connection, names, event_id, at).await
    }
}
