//! Publishing into PostgreSQL.

use sqlx::{PgConnection, Postgres};
use uuid::Uuid;

use super::PostgresStatements;
use crate::store::{NewRecord, PublishSql};

impl PublishSql for Postgres {
    async fn insert(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
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
            .bind(new.partition.cast_signed())
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
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        new: &[NewRecord],
    ) -> Result<(), sqlx::Error> {
        let Some(each) = new.first() else {
            return Ok(());
        };
        let column = |of: fn(&NewRecord) -> &str| new.iter().map(of).collect::<Vec<&str>>();
        let ids: Vec<Uuid> = new.iter().map(|new| new.record.event_id).collect();
        let partitions: Vec<i16> = new.iter().map(|new| new.partition.cast_signed()).collect();
        sqlx::query(sql.insert_all.clone())
            .bind(ids)
            .bind(column(|new| &new.record.key))
            .bind(partitions)
            .bind(column(|new| &new.record.payload))
            .bind(&each.record.event)
            .bind(i64::from(each.record.version))
            .bind(each.headers())
            .bind(each.record.max_retries.map(i64::from))
            .execute(connection)
            .await?;
        Ok(())
    }
}
