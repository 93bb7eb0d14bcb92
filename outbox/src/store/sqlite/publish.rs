//! Publishing into SQLite.

use std::convert::identity;

use sqlx::{Sqlite, SqliteConnection};

use super::SqliteStatements;
use crate::store::{
    NewRecord, PublishSql, as_json,
    publish::{bind_insert, bind_shared},
};

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
        let insert = sqlx::query_scalar(statement.clone());
        let insert = bind_insert!(insert, new, identity::<&str>);
        insert.fetch_optional(connection).await
    }

    async fn insert_all(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        new: &[NewRecord],
    ) -> Result<(), sqlx::Error> {
        let Some(each) = new.first() else {
            return Ok(());
        };
        let insert = sqlx::query(sql.insert_all.clone()).bind(as_json(new)?);
        bind_shared!(insert, each)
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
