//! Publishing into MySQL.

use sqlx::{MySql, MySqlConnection};

use super::MySqlStatements;
use crate::store::{
    NewRecord, PublishSql, as_json,
    publish::{bind_insert, bind_shared},
};

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
        let insert = sqlx::query(statement.clone());
        let insert = bind_insert!(insert, new, str::as_bytes);
        let done = insert.execute(connection).await?;
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
        let insert = bind_shared!(sqlx::query(sql.insert_all.clone()), each);
        insert
            .bind(as_json(new)?)
            .execute(connection)
            .await
            .map(drop)
    }
}
