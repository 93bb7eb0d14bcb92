//! The statements of the test kit.

use sqlx::{Row as _, Sqlite, SqliteConnection};
use uuid::Uuid;

use crate::{
    record::Record,
    store::{
        FetchedRecord, TableNames,
        call::{execute, read, rows},
        statements::{SqlFileError, statements},
    },
};

statements! {
    /// Rendered for each call: the test kit need not be fast.
    TestingStatements {
        stamp, scheduled, set_due, highest, records_above, record, reset_record, reset_failures,
        delete_other_deliveries, reset_delivery,
    }
    optional {}
}

fn statements(names: &TableNames) -> Result<TestingStatements, SqlFileError> {
    let file = concat!(
        include_str!("sql/fragments.sql"),
        include_str!("../columns.sql"),
        include_str!("sql/testing.sql")
    );
    TestingStatements::render::<Sqlite>(file, names)
}

/// A record that is due at a time, or a delivery if `handler` is set.
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
    let sql = statements(names)?;
    let stamp = sql.stamp.bind("event_id", event_id).bind("created_at", at);
    execute::<Sqlite>(connection, stamp).await.map(drop)
}

/// All records and deliveries that wait for a time.
pub(crate) async fn scheduled(
    connection: &mut SqliteConnection,
    names: &TableNames,
) -> Result<Vec<Scheduled>, sqlx::Error> {
    let sql = statements(names)?;
    let rows = rows::<Sqlite>(connection, sql.scheduled.call()).await?;
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

/// Sets the exact time at which a retrying delivery is due.
pub(crate) async fn set_due(
    connection: &mut SqliteConnection,
    names: &TableNames,
    record_id: i64,
    handler: &str,
    due_at: i64,
) -> Result<(), sqlx::Error> {
    let sql = statements(names)?;
    let set = sql.set_due.bind("record_id", record_id);
    let set = set.bind("handler", handler).bind("due_at", due_at);
    execute::<Sqlite>(connection, set).await.map(drop)
}

/// The highest id that this connection sees.
pub(crate) async fn highest(
    connection: &mut SqliteConnection,
    names: &TableNames,
) -> Result<i64, sqlx::Error> {
    let sql = statements(names)?;
    let highest = read::<Sqlite, i64>(connection, sql.highest.call()).await?;
    Ok(highest.first().copied().unwrap_or(0))
}

/// The records above an id that this connection sees, in order.
pub(crate) async fn records(
    connection: &mut SqliteConnection,
    names: &TableNames,
    above: i64,
) -> Result<Vec<Record>, sqlx::Error> {
    let sql = statements(names)?;
    let found = read::<Sqlite, FetchedRecord>(connection, sql.records_above.bind("id", above));
    let found = found.await?.into_iter();
    Ok(found.map(|found| found.record).collect())
}

/// A record with its partition.
pub(crate) async fn record(
    connection: &mut SqliteConnection,
    names: &TableNames,
    id: i64,
) -> Result<Option<FetchedRecord>, sqlx::Error> {
    let sql = statements(names)?;
    let mut found = read::<Sqlite, _>(connection, sql.record.bind("id", id)).await?;
    Ok(found.pop())
}

/// Resets a record to pending, or to scheduled if `due_at` is set, and deletes its failures and
/// deliveries. The delivery of handler `keep` only becomes waiting, with this attempt, so that it
/// stays at its position in its lane.
pub(crate) async fn reset(
    connection: &mut SqliteConnection,
    names: &TableNames,
    record_id: i64,
    due_at: Option<i64>,
    keep: Option<(&str, u32)>,
) -> Result<(), sqlx::Error> {
    let sql = statements(names)?;
    let (handler, attempt) = keep.unzip();
    for statement in [
        &sql.reset_record,
        &sql.reset_failures,
        &sql.delete_other_deliveries,
        &sql.reset_delivery,
    ] {
        let reset = statement
            .bind("record_id", record_id)
            .bind("due_at", due_at)
            .bind("handler", handler)
            .bind("attempt", attempt.map(i64::from));
        execute::<Sqlite>(connection, reset).await?;
    }
    Ok(())
}
