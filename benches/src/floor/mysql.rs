//! The floor on MySQL.

use sqlx::{Connection as _, MySql, MySqlConnection, Row as _, mysql::MySqlRow};

use super::{Floor, PAGE, Row};

impl Floor for MySql {
    async fn floor_connection(url: &str) -> Result<MySqlConnection, sqlx::Error> {
        let mut connection = MySqlConnection::connect(url).await?;
        sqlx::query("set session transaction isolation level read committed")
            .execute(&mut connection)
            .await?;
        Ok(connection)
    }

    async fn page(connection: &mut MySqlConnection, after: i64) -> Result<Vec<Row>, sqlx::Error> {
        // The primary key gives all partitions in the order in which the table is stored.
        let sql = "select id, event_id, event, version, `key`, payload, headers,
    timestampdiff(microsecond, '1970-01-01', created_at)
from outbox_record force index (primary) where status = 'pending' and id > ? order by id limit ?";
        let rows = sqlx::query(sql)
            .bind(after)
            .bind(PAGE as i64)
            .fetch_all(connection)
            .await?;
        rows.iter().map(decode).collect()
    }

    async fn acknowledge(
        connection: &mut MySqlConnection,
        ids: &[i64],
        keep: bool,
    ) -> Result<u64, sqlx::Error> {
        // One statement for any number of ids; it finds each row by the primary key.
        let json = serde_json::to_string(ids).map_err(|error| sqlx::Error::Encode(error.into()))?;
        let sql = if keep {
            "update json_table(?, '$[*]' columns (id bigint path '$')) u
        straight_join outbox_record r force index (primary) on r.id = u.id
        set r.status = 'completed', r.completed_at = utc_timestamp(6)"
        } else {
            "delete r from json_table(?, '$[*]' columns (id bigint path '$')) u
        straight_join outbox_record r force index (primary) on r.id = u.id"
        };
        let done = sqlx::query(sql).bind(json).execute(connection).await?;
        Ok(done.rows_affected())
    }
}

fn decode(row: &MySqlRow) -> Result<Row, sqlx::Error> {
    let key = String::from_utf8(row.try_get(4)?);
    Ok(Row {
        id: row.try_get(0)?,
        event_id: row.try_get(1)?,
        event: row.try_get(2)?,
        version: row.try_get(3)?,
        key: key.map_err(|error| sqlx::Error::Decode(error.into()))?,
        payload: row.try_get(5)?,
        headers: row.try_get(6)?,
        created_at: row.try_get(7)?,
    })
}
