//! Publishing into MySQL.

use sqlx::{MySql, MySqlConnection};

use crate::store::{NewRecord, PublishSql, PublishStatements, TableNames, as_json, trusted};

impl PublishSql for MySql {
    fn inserts(names: &TableNames) -> PublishStatements {
        let record = names.table("record", '`');
        let one = format!(
            "into {record} (event_id, event, version, `key`, part, payload, headers, max_retries, dedup_key, created_at, due_at, status)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, utc_timestamp(6),
    coalesce(utc_timestamp(6) + interval ? microsecond, timestamp('1970-01-01') + interval ? microsecond),
    if(due_at is null, 'pending', 'scheduled'))"
        );
        // Without their own character set, the columns have the database's, which may be `latin1`.
        let many = format!(
            "insert into {record} (event_id, event, version, `key`, part, payload, headers, max_retries, created_at)
select unhex(r.event_id), ?, ?, r.record_key, r.part, r.payload, ?, ?, utc_timestamp(6)
from json_table(?, '$[*]' columns (
    place for ordinality,
    event_id char(32) path '$[0]',
    record_key varchar(255) character set utf8mb4 path '$[1]',
    part smallint path '$[2]',
    payload longtext character set utf8mb4 path '$[3]'
)) as r order by r.place"
        );
        PublishStatements {
            // What `ignore` would hide besides a duplicate was checked before.
            one_deduplicated: trusted(format!("insert ignore {one}")),
            one: trusted(format!("insert {one}")),
            many: trusted(many),
        }
    }

    async fn insert(
        connection: &mut MySqlConnection,
        inserts: &PublishStatements,
        new: &NewRecord,
    ) -> Result<Option<i64>, sqlx::Error> {
        let sql = match new.dedup_key {
            Some(_) => &inserts.one_deduplicated,
            None => &inserts.one,
        };
        let (delay, at) = new.due.micros();
        let done = sqlx::query(sql.clone())
            .bind(new.record.event_id)
            .bind(&new.record.event)
            .bind(i64::from(new.record.version))
            .bind(new.record.key.as_bytes())
            .bind(new.partition.cast_signed())
            .bind(&new.record.payload)
            .bind(new.headers())
            .bind(new.record.max_retries.map(i64::from))
            .bind(new.dedup_key.as_ref().map(String::as_bytes))
            .bind(delay)
            .bind(at)
            .execute(connection)
            .await?;
        Ok((done.rows_affected() > 0).then(|| done.last_insert_id().cast_signed()))
    }

    async fn insert_all(
        connection: &mut MySqlConnection,
        inserts: &PublishStatements,
        new: &[NewRecord],
    ) -> Result<(), sqlx::Error> {
        let Some(each) = new.first() else {
            return Ok(());
        };
        sqlx::query(inserts.many.clone())
            .bind(&each.record.event)
            .bind(i64::from(each.record.version))
            .bind(each.headers())
            .bind(each.record.max_retries.map(i64::from))
            .bind(as_json(new)?)
            .execute(connection)
            .await?;
        Ok(())
    }
}
