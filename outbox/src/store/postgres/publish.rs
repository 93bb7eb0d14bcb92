//! Publishing into PostgreSQL.

use std::convert::identity;

use sqlx::{PgConnection, Postgres};
use uuid::Uuid;

use super::PostgresStatements;
use crate::store::{
    NewRecord, PublishSql,
    publish::{bind_insert, bind_shared},
};

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
        let insert = sqlx::query_scalar(statement.clone());
        let insert = bind_insert!(insert, new, identity::<&str>);
        insert.fetch_optional(connection).await
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
        let insert = sqlx::query(sql.insert_all.clone())
            .bind(ids)
            .bind(column(|new| &new.record.key))
            .bind(partitions)
            .bind(column(|new| &new.record.payload));
        bind_shared!(insert, each).execute(connection).await?;
        Ok(())
    }
}
