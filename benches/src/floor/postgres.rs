//! The floor on PostgreSQL.

use sqlx::{Connection as _, PgConnection, Postgres, Row as _, postgres::PgRow};

use super::{Floor, PAGE, Row};

impl Floor for Postgres {
    async fn floor_connection(url: &str) -> Result<PgConnection, sqlx::Error> {
        let mut connection = PgConnection::connect(url).await?;
        sqlx::query("set synchronous_commit = off")
            .execute(&mut connection)
            .await?;
        Ok(connection)
    }

    async fn page(connection: &mut PgConnection, after: i64) -> Result<Vec<Row>, sqlx::Error> {
        let sql = "select id, event_id, event, version, key, payload, headers, created_at from outbox_record
where status = 'pending' and id > $1 order by id limit $2";
        let rows = sqlx::query(sql)
            .bind(after)
            .bind(PAGE as i64)
            .fetch_all(connection)
            .await?;
        rows.iter().map(decode).collect()
    }

    async fn acknowledge(
        connection: &mut PgConnection,
        ids: &[i64],
        keep: bool,
    ) -> Result<u64, sqlx::Error> {
        let sql = if keep {
            "update outbox_record set status = 'completed', completed_at = clock_timestamp() where id = any($1)"
        } else {
            "delete from outbox_record where id = any($1)"
        };
        let done = sqlx::query(sql).bind(ids).execute(connection).await?;
        Ok(done.rows_affected())
    }
}

fn decode(row: &PgRow) -> Result<Row, sqlx::Error> {
    // A `timestamptz` is a number of microseconds.
    let bytes = row.try_get_raw(7)?.as_bytes();
    let created_at = bytes.ok().and_then(|bytes| bytes.try_into().ok());
    Ok(Row {
        id: row.try_get(0)?,
        event_id: row.try_get(1)?,
        event: row.try_get(2)?,
        version: row.try_get(3)?,
        key: row.try_get(4)?,
        payload: row.try_get(5)?,
        headers: row.try_get(6)?,
        created_at: created_at.map_or(0, i64::from_be_bytes),
    })
}
