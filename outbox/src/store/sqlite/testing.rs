//! What the test kit reads and changes in SQLite.

use sqlx::{Row as _, SqliteConnection};
use uuid::Uuid;

use super::fetch::{RECORD, fetched};
use crate::{
    record::Record,
    store::{FetchedRecord, TableNames, trusted},
};

/// Something that is due at a time: a record, or a delivery if there is a handler.
#[derive(Debug)]
pub(crate) struct Scheduled {
    pub(crate) record_id: i64,
    pub(crate) handler: Option<String>,
    /// Microseconds since 1970.
    pub(crate) due_at: i64,
}

/// See [`PublishSql::stamp`](crate::store::PublishSql::stamp).
pub(super) async fn stamp(
    connection: &mut SqliteConnection,
    names: &TableNames,
    event_id: Uuid,
    at: i64,
) -> Result<(), sqlx::Error> {
    let record = names.table("record", '"');
    // From the newest on: it was written a moment ago.
    let sql = trusted(format!(
        "update {record} set created_at = ?2
where id = (select id from {record} where event_id = ?1 order by id desc limit 1)"
    ));
    sqlx::query(sql)
        .bind(event_id)
        .bind(at)
        .execute(connection)
        .await?;
    Ok(())
}

/// All that waits for a time.
pub(crate) async fn scheduled(
    connection: &mut SqliteConnection,
    names: &TableNames,
) -> Result<Vec<Scheduled>, sqlx::Error> {
    let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
    let sql = trusted(format!(
        "select id, null, due_at from {record} where status = 'scheduled'
union all
select record_id, handler, due_at from {delivery} where status = 'retrying'"
    ));
    let rows = sqlx::query(sql).fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            Ok(Scheduled {
                record_id: row.try_get(0)?,
                handler: row.try_get(1)?,
                due_at: row.try_get(2)?,
            })
        })
        .collect()
}

/// A delivery that was just written is due at exactly this time.
pub(crate) async fn set_due(
    connection: &mut SqliteConnection,
    names: &TableNames,
    record_id: i64,
    handler: &str,
    due_at: i64,
) -> Result<(), sqlx::Error> {
    let delivery = names.table("delivery", '"');
    let sql = trusted(format!(
        "update {delivery} set due_at = ?3 where record_id = ?1 and handler = ?2 and status = 'retrying'"
    ));
    sqlx::query(sql)
        .bind(record_id)
        .bind(handler)
        .bind(due_at)
        .execute(connection)
        .await?;
    Ok(())
}

/// The highest id that this connection sees.
pub(crate) async fn highest(
    connection: &mut SqliteConnection,
    names: &TableNames,
) -> Result<i64, sqlx::Error> {
    let record = names.table("record", '"');
    sqlx::query_scalar(trusted(format!(
        "select coalesce(max(id), 0) from {record}"
    )))
    .fetch_one(connection)
    .await
}

/// The records above an id that this connection sees, in order.
pub(crate) async fn records(
    connection: &mut SqliteConnection,
    names: &TableNames,
    above: i64,
) -> Result<Vec<Record>, sqlx::Error> {
    let record = names.table("record", '"');
    let sql = trusted(format!(
        "select {RECORD} from {record} r where r.id > ?1 order by r.id"
    ));
    let rows = sqlx::query(sql).bind(above).fetch_all(connection).await?;
    let record = |row| Ok(fetched(row)?.record);
    rows.iter().map(record).collect()
}

/// A record with its partition.
pub(crate) async fn record(
    connection: &mut SqliteConnection,
    names: &TableNames,
    id: i64,
) -> Result<Option<FetchedRecord>, sqlx::Error> {
    let record = names.table("record", '"');
    let sql = trusted(format!("select {RECORD} from {record} r where r.id = ?1"));
    let row = sqlx::query(sql).bind(id).fetch_optional(connection).await?;
    row.as_ref().map(fetched).transpose()
}

/// Makes a record pending, as if nothing had happened to it; due at a time if there is one. The
/// delivery of `keep`, if there is one, only becomes a waiting one with this attempt: it does not
/// lose its place in its lane.
pub(crate) async fn reset(
    connection: &mut SqliteConnection,
    names: &TableNames,
    record_id: i64,
    due_at: Option<i64>,
    keep: Option<(&str, u32)>,
) -> Result<(), sqlx::Error> {
    let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
    let failure = names.table("failure", '"');
    let (handler, attempt) = keep.unzip();
    let statements = [
        format!(
            "update {record} set status = case when ?2 is null then 'pending' else 'scheduled' end,
    due_at = ?2, completed_at = null where id = ?1"
        ),
        format!("delete from {failure} where record_id = ?1"),
        format!("delete from {delivery} where record_id = ?1 and (?3 is null or handler <> ?3)"),
        format!(
            "update {delivery} set status = 'waiting', blocking = 1, attempt = ?4, failure_count = 0,
    first_failed_at = null, due_at = null, finished_at = null, error = null, error_kind = null, fingerprint = null
where record_id = ?1 and handler = ?3"
        ),
    ];
    for sql in statements {
        sqlx::query(trusted(sql))
            .bind(record_id)
            .bind(due_at)
            .bind(handler)
            .bind(attempt)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
