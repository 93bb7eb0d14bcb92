//! The floor on SQLite.

use std::time::Duration;

use sqlx::{
    ConnectOptions as _, Row as _, Sqlite, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteRow, SqliteSynchronous},
};

use super::{Floor, PAGE, Row};

impl Floor for Sqlite {
    async fn floor_connection(url: &str) -> Result<SqliteConnection, sqlx::Error> {
        SqliteConnectOptions::new()
            .filename(url)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(Duration::from_secs(10))
            .connect()
            .await
    }

    async fn page(connection: &mut SqliteConnection, after: i64) -> Result<Vec<Row>, sqlx::Error> {
        // `+` makes SQLite read in the order in which the table is stored, not by an index.
        let sql = "select id, event_id, event, version, key, payload, headers, created_at from outbox_record
where +status = 'pending' and id > ?1 order by id limit ?2";
        let rows = sqlx::query(sql)
            .bind(after)
            .bind(PAGE as i64)
            .fetch_all(connection)
            .await?;
        rows.iter().map(decode).collect()
    }

    async fn acknowledge(
        connection: &mut SqliteConnection,
        ids: &[i64],
        keep: bool,
    ) -> Result<u64, sqlx::Error> {
        let sql = if keep {
            "update outbox_record set status = 'completed', completed_at = cast((julianday('now') - 2440587.5) * 86400000000 as integer) where id in (select value from json_each(?1))"
        } else {
            "delete from outbox_record where id in (select value from json_each(?1))"
        };
        let json = serde_json::to_string(ids).map_err(|error| sqlx::Error::Encode(error.into()))?;
        let done = sqlx::query(sql).bind(json).execute(connection).await?;
        Ok(done.rows_affected())
    }
}

fn decode(row: &SqliteRow) -> Result<Row, sqlx::Error> {
    Ok(Row {
        id: row.try_get(0)?,
        event_id: row.try_get(1)?,
        event: row.try_get(2)?,
        version: row.try_get(3)?,
        key: row.try_get(4)?,
        payload: row.try_get(5)?,
        headers: row.try_get(6)?,
        created_at: row.try_get(7)?,
    })
}
