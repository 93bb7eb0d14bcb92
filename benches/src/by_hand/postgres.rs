//! Publishing by hand on PostgreSQL.

use sqlx::{PgConnection, Postgres};

use super::{ByHand, NewRow};

impl ByHand for Postgres {
    async fn insert_business(connection: &mut PgConnection, id: i64) -> Result<(), sqlx::Error> {
        sqlx::query("insert into business (id, note) values ($1, 'an order')")
            .bind(id)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn insert_one(connection: &mut PgConnection, row: &NewRow) -> Result<(), sqlx::Error> {
        let sql = "insert into outbox_record (event_id, event, version, key, part, payload)
values ($1, 'bench.happened', 1, $2, $3, $4)";
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
        connection: &mut PgConnection,
        rows: &[NewRow],
    ) -> Result<(), sqlx::Error> {
        let sql = "insert into outbox_record (event_id, event, version, key, part, payload)
select event_id, 'bench.happened', 1, key, part, payload
from unnest($1::uuid[], $2::text[], $3::smallint[], $4::text[]) as r (event_id, key, part, payload)";
        sqlx::query(sql)
            .bind(rows.iter().map(|row| row.event_id).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| &*row.key).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.partition).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| &*row.payload).collect::<Vec<_>>())
            .execute(connection)
            .await?;
        Ok(())
    }
}
