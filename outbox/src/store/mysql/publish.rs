//! Publishing into MySQL.

use sqlx::{MySql, MySqlConnection};

use super::MySqlStatements;
use crate::store::{NewRecord, PublishSql, as_json};

impl PublishSql for MySql {
    async fn insert(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        new: &NewRecord,
    ) -> Result<Option<i64>, sqlx::Error> {
        let statement = match new.dedup_key {
            Some(_) => &sql.insert_deduplicated,
            None => &sql.insert,
        };
        let (delay, at) = new.due.micros();
        let done = sqlx::query(statement.clone())
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
        sql: &MySqlStatements,
        new: &[NewRecord],
    ) -> Result<(), sqlx::Error> {
        let Some(each) = new.first() else {
            return Ok(());
        };
        sqlx::query(sql.insert_all.clone())
            .bind(&each.record.event)
            .bind(i64::from(each.record.version))
            .bind(each.headers())
            .bind(each.record.max_retries.map(i64::from))
            .bind(as_json(new)?)
            .execute(connection)
            .await
            .map(drop)
    }
}
