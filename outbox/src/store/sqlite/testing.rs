//! The statements of the test kit.

use sqlx::{Row as _, SqliteConnection};
use uuid::Uuid;

use super::QUOTE;
use crate::{
    record::Record,
    store::{
        FetchedRecord, TableNames,
        columns::{read_all, read_one},
        statements::statements,
    },
};

statements! {
    /// Made for each call: the test kit need not be fast.
    TestingStatements,
    concat!(include_str!("sql/fragments.sql"), include_str!("sql/testing.sql"));
    stamp, scheduled, set_due, highest, records_above, record, reset_record, reset_failures,
    delete_other_deliveries, reset_delivery,
}

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
    let sql = TestingStatements::render(names, QUOTE)?;
    let stamp = sqlx::query(sql.stamp).bind(event_id).bind(at);
    stamp.execute(connection).await.map(drop)
}

/// All records and deliveries that wait for a time.
pub(crate) async fn scheduled(
    connection: &mut SqliteConnection,
    names: &TableNames,
) -> Result<Vec<Scheduled>, sqlx::Error> {
    let sql = TestingStatements::render(names, QUOTE)?;
    let rows = sqlx::query(sql.scheduled).fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            Ok(Scheduled {
                record_id: row.try_get("record_id")?,
                handler: row.try_get("handler")?,
                due_at: row.try_get("due_at")?,
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
    let sql = TestingStatements::render(names, QUOTE)?;
    let set = sqlx::query(sql.set_due).bind(record_id).bind(handler);
    set.bind(due_at).execute(connection).await.map(drop)
}

/// The highest id that this connection sees.
pub(crate) async fn highest(
    connection: &mut SqliteConnection,
    names: &TableNames,
) -> Result<i64, sqlx::Error> {
    let sql = TestingStatements::render(names, QUOTE)?;
    sqlx::query_scalar(sql.highest).fetch_one(connection).await
}

/// The records above an id that this connection sees, in order.
pub(crate) async fn records(
    connection: &mut SqliteConnection,
    names: &TableNames,
    above: i64,
) -> Result<Vec<Record>, sqlx::Error> {
    let sql = TestingStatements::render(names, QUOTE)?;
    let rows = sqlx::query(sql.records_above).bind(above);
    let found: Vec<FetchedRecord> = read_all(&rows.fetch_all(connection).await?)?;
    Ok(found.into_iter().map(|found| found.record).collect())
}

/// A record with its partition.
pub(crate) async fn record(
    connection: &mut SqliteConnection,
    names: &TableNames,
    id: i64,
) -> Result<Option<FetchedRecord>, sqlx::Error> {
    let sql = TestingStatements::render(names, QUOTE)?;
    let row = sqlx::query(sql.record).bind(id);
    let row = row.fetch_optional(connection).await?;
    row.as_ref().map(read_one).transpose()
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
    let sql = TestingStatements::render(names, QUOTE)?;
    let (handler, attempt) = keep.unzip();
    for statement in [
        sql.reset_record,
        sql.reset_failures,
        sql.delete_other_deliveries,
        sql.reset_delivery,
    ] {
        sqlx::query(statement)
            .bind(record_id)
            .bind(due_at)
            .bind(handler)
            .bind(attempt)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
