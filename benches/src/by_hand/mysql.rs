//! Publishing by hand on MySQL.

use sqlx::{MySql, MySqlConnection};

use super::{ByHand, NewRow};

impl ByHand for MySql {
    async fn insert_business(connection: &mut MySqlConnection, id: i64) -> Result<(), sqlx::Error> {
        sqlx::query("insert into business (id, note) values (?, 'an order')")
            .bind(id)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn insert_one(connection: &mut MySqlConnection, row: &NewRow) -> Result<(), sqlx::Error> {
        Self::insert_many(connection, std::slice::from_ref(row)).await
    }

    async fn insert_many(
        connection: &mut MySqlConnection,
        rows: &[NewRow],
    ) -> Result<(), sqlx::Error> {
        let values = vec!["(?, 'bench.happened', 1, ?, ?, ?, utc_timestamp(6))"; rows.len()];
        let sql = format!(
            "insert into outbox_record (event_id, event, version, `key`, part, payload, created_at) values {}",
            values.join(", ")
        );
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
        for row in rows {
            query = query
                .bind(row.event_id)
                .bind(row.key.as_bytes())
                .bind(row.partition)
                .bind(&row.payload);
        }
        query.execute(connection).await?;
        Ok(())
    }
}
