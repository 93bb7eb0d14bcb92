//! Publishing by hand on SQLite.

use serde_json::json;
use sqlx::{Sqlite, SqliteConnection};

use super::{ByHand, NewRow};

impl ByHand for Sqlite {
    async fn insert_business(
        connection: &mut SqliteConnection,
        id: i64,
    ) -> Result<(), sqlx::Error> {
        sqlx::query("insert into business (id, note) values (?1, 'an order')")
            .bind(id)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn insert_one(
        connection: &mut SqliteConnection,
        row: &NewRow,
    ) -> Result<(), sqlx::Error> {
        let sql = "insert into outbox_record (event_id, event, version, key, part, payload)
values (?1, 'bench.happened', 1, ?2, ?3, ?4)";
        sqlx::query(sql)
            .bind(row.event_id)
            .bind(&row.key)
            .bind(row.partition)
            .bind(&row.payload)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn insert_many(
        connection: &mut SqliteConnection,
        rows: &[NewRow],
    ) -> Result<(), sqlx::Error> {
        // One JSON parameter for all rows: sqlx hands each statement to another thread.
        let values: Vec<_> = rows
            .iter()
            .map(|row| {
                json!([
                    row.event_id.simple().to_string(),
                    row.key,
                    row.partition,
                    row.payload
                ])
            })
            .collect();
        let json =
            serde_json::to_string(&values).map_err(|error| sqlx::Error::Encode(error.into()))?;
        let sql = "insert into outbox_record (event_id, event, version, key, part, payload)
select unhex(value ->> 0), 'bench.happened', 1, value ->> 1, value ->> 2, value ->> 3 from json_each(?1)";
        sqlx::query(sql).bind(json).execute(connection).await?;
        Ok(())
    }
}
