//! Reading from SQLite.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::{Row as _, Sqlite, SqliteConnection, sqlite::SqliteRow};

use super::NOW;
use crate::{
    record::Record,
    store::{
        FetchSql, FetchedRecord, InMemory, OpenWriters, Page, TableNames, settle::json, trusted,
    },
};

/// What a record is read from; `r` is its table.
pub(super) const RECORD: &str = "r.part, r.id, r.event_id, r.event, r.version, r.key, r.payload, r.headers, r.created_at, r.max_retries";
impl FetchSql for Sqlite {
    async fn pending_records(
        connection: &mut SqliteConnection,
        names: &TableNames,
        pages: &[Page],
        known: &[InMemory],
        per_page: i64,
        limit: i64,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        let record = names.table("record", '"');
        // `in` with a limit inside: one short walk of the index per partition, and the ids that
        // it finds are looked up in their order. `cross join`: in this order, whatever the
        // statistics say.
        let sql = trusted(format!(
            "select {RECORD} from json_each(?1) p cross join {record} r
where r.id in (
    select x.id from {record} x
    where x.part = p.value ->> 'part' and x.status = 'pending'
        and x.id > p.value ->> 'after' and x.id not in (select value from json_each(?4))
    order by x.id limit ?2
) limit ?3"
        ));
        let known: Vec<i64> = known.iter().map(|known| known.id).collect();
        let rows = sqlx::query(sql)
            .bind(json(pages)?)
            .bind(per_page)
            .bind(limit)
            .bind(json(&known)?)
            .fetch_all(connection)
            .await?;
        rows.iter().map(fetched).collect()
    }

    async fn due_records(
        connection: &mut SqliteConnection,
        names: &TableNames,
        parts: &[u16],
        offset: i64,
        limit: i64,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        let record = names.table("record", '"');
        let sql = trusted(format!(
            "select {RECORD} from json_each(?1) p cross join {record} r
where r.id in (
    select x.id from {record} x
    where x.part = p.value and x.status = 'scheduled' and x.due_at <= {NOW} + ?2
    order by x.due_at, x.id limit ?3
) order by r.due_at, r.id limit ?3"
        ));
        let rows = sqlx::query(sql)
            .bind(json(parts)?)
            .bind(offset)
            .bind(limit)
            .fetch_all(connection)
            .await?;
        rows.iter().map(fetched).collect()
    }

    async fn next_due(
        connection: &mut SqliteConnection,
        names: &TableNames,
        parts: &[u16],
        handlers: &[&str],
        offset: i64,
    ) -> Result<Option<i64>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
        let sql = trusted(format!(
            "select min(due_at) - {NOW} - ?3 from (
    select (
        select r.due_at from {record} r where r.part = p.value and r.status = 'scheduled' order by r.due_at limit 1
    ) as due_at from json_each(?1) p
    union all
    select (
        select d.due_at from {delivery} d
        where d.part = p.value and d.status = 'retrying' and d.handler in (select h.value from json_each(?2) h)
        order by d.due_at limit 1
    ) from json_each(?1) p
)"
        ));
        sqlx::query_scalar(sql)
            .bind(json(parts)?)
            .bind(json(handlers)?)
            .bind(offset)
            .fetch_one(connection)
            .await
    }

    /// There is one writer at a time, and it draws its ids after it has become that.
    async fn open_writers(
        _: &mut SqliteConnection,
        _: &TableNames,
    ) -> Result<OpenWriters, sqlx::Error> {
        Ok(OpenWriters::Serial)
    }

    async fn unhandled_events(
        connection: &mut SqliteConnection,
        names: &TableNames,
        parts: &[u16],
    ) -> Result<Vec<String>, sqlx::Error> {
        let record = names.table("record", '"');
        let sql = trusted(format!(
            "select distinct event from {record}
where status = 'unhandled' and part in (select p.value from json_each(?1) p)"
        ));
        sqlx::query_scalar(sql)
            .bind(json(parts)?)
            .fetch_all(connection)
            .await
    }

    async fn paused_handlers(
        connection: &mut SqliteConnection,
        names: &TableNames,
    ) -> Result<Vec<String>, sqlx::Error> {
        let pause = names.table("pause", '"');
        sqlx::query_scalar(trusted(format!("select handler from {pause}")))
            .fetch_all(connection)
            .await
    }
}

pub(super) fn fetched(row: &SqliteRow) -> Result<FetchedRecord, sqlx::Error> {
    let headers: Option<&str> = row.try_get(7)?;
    let record = Record {
        id: row.try_get(1)?,
        event_id: row.try_get(2)?,
        event: row.try_get(3)?,
        version: u32::try_from(row.try_get::<i64, _>(4)?).unwrap_or(u32::MAX),
        key: row.try_get(5)?,
        payload: row.try_get(6)?,
        headers: headers.map_or_else(BTreeMap::new, super::super::headers),
        created_at: moment(row.try_get(8)?),
        max_retries: row
            .try_get::<Option<i64>, _>(9)?
            .map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
    };
    Ok(FetchedRecord {
        part: row.try_get(0)?,
        record,
    })
}

/// What was put there by hand may be beyond what a timestamp can be.
pub(super) fn moment(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}
