//! Reading from PostgreSQL.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::{
    Decode, PgConnection, Postgres, Row as _, Type,
    error::BoxDynError,
    postgres::{PgRow, PgTypeInfo, PgValueRef},
};

use super::signed;
use crate::{
    record::Record,
    store::{FetchSql, FetchedRecord, InMemory, OpenWriters, Page, TableNames, trusted},
};

/// What a record is read from; `r` is its table.
pub(super) const RECORD: &str = "r.part, r.id, r.event_id, r.event, r.version, r.key, r.payload, r.headers, r.created_at, r.max_retries";
impl FetchSql for Postgres {
    async fn pending_records(
        connection: &mut PgConnection,
        names: &TableNames,
        pages: &[Page],
        known: &[InMemory],
        per_page: i64,
        limit: i64,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        let record = names.table("record", '"');
        // Lateral: one short walk of the index per partition. Compared and ordered by both columns,
        // since only that index has them: where most records are of a few partitions, the planner
        // would rather walk the primary key, through all of them, for each partition that is
        // empty. The known ones are hashed once for all.
        let sql = trusted(format!(
            "select r.* from unnest($1::smallint[], $2::bigint[]) as p (part, after)
cross join lateral (
    select {RECORD} from {record} r
    where (r.part, r.id) > (p.part, p.after) and r.part <= p.part and r.status = 'pending'
        and r.id not in (select unnest($3::bigint[]))
    order by r.part, r.id limit $4
) r limit $5"
        ));
        let parts: Vec<i16> = pages.iter().map(|page| page.part.cast_signed()).collect();
        let after: Vec<i64> = pages.iter().map(|page| page.after).collect();
        let known: Vec<i64> = known.iter().map(|known| known.id).collect();
        let rows = sqlx::query(sql)
            .bind(parts)
            .bind(after)
            .bind(known)
            .bind(per_page)
            .bind(limit)
            .fetch_all(connection)
            .await?;
        rows.iter().map(fetched).collect()
    }

    async fn due_records(
        connection: &mut PgConnection,
        names: &TableNames,
        parts: &[u16],
        offset: i64,
        limit: i64,
    ) -> Result<Vec<FetchedRecord>, sqlx::Error> {
        let record = names.table("record", '"');
        // The time of the statement: the index is not asked for a time that changes while it is read.
        let sql = trusted(format!(
            "select r.* from unnest($1::smallint[]) as p (part)
cross join lateral (
    select {RECORD}, r.due_at from {record} r
    where r.part = p.part and r.status = 'scheduled'
        and r.due_at <= statement_timestamp() + $2 * interval '1 microsecond'
    order by r.due_at, r.id limit $3
) r order by r.due_at, r.id limit $3"
        ));
        let rows = sqlx::query(sql)
            .bind(signed(parts))
            .bind(offset)
            .bind(limit)
            .fetch_all(connection)
            .await?;
        rows.iter().map(fetched).collect()
    }

    async fn next_due(
        connection: &mut PgConnection,
        names: &TableNames,
        parts: &[u16],
        handlers: &[&str],
        offset: i64,
    ) -> Result<Option<i64>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
        let sql = trusted(format!(
            "select (extract(epoch from min(least(
    (select r.due_at from {record} r where r.part = p.part and r.status = 'scheduled' order by r.due_at limit 1),
    (select d.due_at from {delivery} d where d.part = p.part and d.status = 'retrying' and d.handler = any($2)
        order by d.due_at limit 1)
)) - clock_timestamp()) * 1000000)::bigint - $3
from unnest($1::smallint[]) as p (part)"
        ));
        sqlx::query_scalar(sql)
            .bind(signed(parts))
            .bind(handlers)
            .bind(offset)
            .fetch_one(connection)
            .await
    }

    async fn open_writers(
        connection: &mut PgConnection,
        names: &TableNames,
    ) -> Result<OpenWriters, sqlx::Error> {
        // A transaction takes this lock before it draws an id, and gives it up after its rows
        // can be seen. The highest drawn id is read first: the outer side of a nested loop. Who
        // may write the table need not be allowed to look at its sequence.
        let rows: Vec<(Option<i64>, Option<String>)> = sqlx::query_as(
            "select s.drawn, l.virtualtransaction
from (
    select case when has_sequence_privilege(id, 'usage, select') then coalesce(pg_sequence_last_value(id), 0) end as drawn
    from cast(pg_get_serial_sequence($1, 'id') as regclass) as id
    offset 0
) s
left join lateral (
    select virtualtransaction from pg_locks
    where locktype = 'relation' and relation = $1::regclass and mode = 'RowExclusiveLock' and granted
        and pid is distinct from pg_backend_pid()
        and database = (select oid from pg_database where datname = current_database())
) l on true",
        )
        .bind(names.table("record", '"'))
        .fetch_all(connection)
        .await?;
        let drawn = rows.first().and_then(|row| row.0);
        let names = rows.into_iter().filter_map(|row| row.1).collect();
        Ok(OpenWriters::Named { names, drawn })
    }

    async fn unhandled_events(
        connection: &mut PgConnection,
        names: &TableNames,
        parts: &[u16],
    ) -> Result<Vec<String>, sqlx::Error> {
        let record = names.table("record", '"');
        let sql = trusted(format!(
            "select distinct event from {record} where status = 'unhandled' and part = any($1)"
        ));
        sqlx::query_scalar(sql)
            .bind(signed(parts))
            .fetch_all(connection)
            .await
    }

    async fn paused_handlers(
        connection: &mut PgConnection,
        names: &TableNames,
    ) -> Result<Vec<String>, sqlx::Error> {
        let pause = names.table("pause", '"');
        sqlx::query_scalar(trusted(format!("select handler from {pause}")))
            .fetch_all(connection)
            .await
    }
}

/// The types of the columns are ours, and not compared for each row; a value that is none of its
/// type is an error all the same.
pub(super) fn fetched(row: &PgRow) -> Result<FetchedRecord, sqlx::Error> {
    let created_at: Moment = row.try_get_unchecked(8)?;
    let headers: Option<&str> = row.try_get_unchecked(7)?;
    let record = Record {
        id: row.try_get_unchecked(1)?,
        event_id: row.try_get_unchecked(2)?,
        event: row.try_get_unchecked(3)?,
        version: u32::try_from(row.try_get_unchecked::<i64, _>(4)?).unwrap_or(u32::MAX),
        key: row.try_get_unchecked(5)?,
        payload: row.try_get_unchecked(6)?,
        headers: headers.map_or_else(BTreeMap::new, super::super::headers),
        created_at: created_at.0,
        max_retries: row
            .try_get_unchecked::<Option<i64>, _>(9)?
            .map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
    };
    Ok(FetchedRecord {
        part: row.try_get_unchecked::<i16, _>(0)?.cast_unsigned(),
        record,
    })
}

/// A `timestamptz` as the protocol has it: microseconds since the year 2000.
pub(super) struct Moment(pub(super) Timestamp);

impl Type<Postgres> for Moment {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("timestamptz")
    }
}

impl<'r> Decode<'r, Postgres> for Moment {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        const YEAR_2000: i64 = 946_684_800_000_000;
        let micros = <i64 as Decode<Postgres>>::decode(value)?;
        let since_1970 = micros.saturating_add(YEAR_2000);
        // `infinity` is beyond what a timestamp can be.
        Ok(Self(
            Timestamp::from_microsecond(since_1970).unwrap_or(Timestamp::MAX),
        ))
    }
}
