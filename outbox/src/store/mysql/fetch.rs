//! Reading from MySQL.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::{MySql, MySqlConnection, Row as _, mysql::MySqlRow};

use super::places;
use crate::{
    Attempt, Record,
    store::{
        FetchSql, Fetched, FetchedDelivery, LaneName, Names, Page, Writers, settle::json, trusted,
    },
};

/// What a record is read from; `r` is its table.
const RECORD: &str = "r.part, r.id, r.event_id, r.event, r.version, r.`key`, r.payload, r.headers,
    timestampdiff(microsecond, '1970-01-01', r.created_at), r.max_retries";
/// What a delivery is read from, after [`RECORD`]; `d` is its table.
const DELIVERY: &str = "d.handler, d.status = 'waiting', d.blocking, d.attempt, d.failure_count,
    timestampdiff(microsecond, '1970-01-01', d.first_failed_at)";
/// Lanes that were given as JSON.
const LANES: &str = "json_table(?, '$[*]' columns (
    place for ordinality,
    part smallint path '$.part',
    record_key varchar(255) character set utf8mb4 path '$.key',
    handler varchar(255) character set utf8mb4 path '$.handler'
)) l";

/// The same statement for each of many partitions. There is no `lateral` in MariaDB, and a scan of
/// all partitions at once cannot end after so many rows of each.
fn for_each(count: usize, branch: &str) -> String {
    match count {
        1 => branch.to_owned(),
        _ => vec![format!("({branch})"); count].join("\nunion all\n"),
    }
}

impl FetchSql for MySql {
    async fn pending(
        connection: &mut MySqlConnection,
        names: &Names,
        pages: &[Page],
        per_page: i64,
        limit: i64,
    ) -> Result<Vec<Fetched>, sqlx::Error> {
        if pages.is_empty() {
            return Ok(Vec::new());
        }
        let record = names.table("record", '`');
        let branch = format!(
            "select {RECORD} from {record} r
where r.status = 'pending' and r.part = ? and r.id > ? and r.id <= ? order by r.id limit ?"
        );
        let branches = for_each(pages.len(), &branch);
        let sql = trusted(format!("select * from ({branches}) r limit ?"));
        let mut query = sqlx::query(sql);
        for page in pages {
            query = query
                .bind(page.part.cast_signed())
                .bind(page.after)
                .bind(page.until)
                .bind(per_page);
        }
        let rows = query.bind(limit).fetch_all(connection).await?;
        rows.iter().map(fetched).collect()
    }

    async fn due_records(
        connection: &mut MySqlConnection,
        names: &Names,
        parts: &[u16],
        offset: i64,
        limit: i64,
    ) -> Result<Vec<Fetched>, sqlx::Error> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let record = names.table("record", '`');
        let branch = format!(
            "select id, due_at from {record}
where status = 'scheduled' and part = ? and due_at <= utc_timestamp(6) + interval ? microsecond
order by due_at, id limit ?"
        );
        let branches = for_each(parts.len(), &branch);
        let sql = trusted(format!(
            "select {RECORD} from (select id, due_at from ({branches}) x order by due_at, id limit ?) x
straight_join {record} r on r.id = x.id
order by x.due_at, x.id"
        ));
        let mut query = sqlx::query(sql);
        for part in parts {
            query = query.bind(part.cast_signed()).bind(offset).bind(limit);
        }
        let rows = query.bind(limit).fetch_all(connection).await?;
        rows.iter().map(fetched).collect()
    }

    async fn due_deliveries(
        connection: &mut MySqlConnection,
        names: &Names,
        parts: &[u16],
        handlers: &[&str],
        offset: i64,
        limit: i64,
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
        let branch = format!(
            "select id, due_at from {delivery}
where status = 'scheduled' and part = ? and due_at <= utc_timestamp(6) + interval ? microsecond
    and json_contains(?, json_quote(handler))
order by due_at, id limit ?"
        );
        let (branches, followed) = (for_each(parts.len(), &branch), followed(names));
        let sql = trusted(format!(
            "select {RECORD}, {DELIVERY}, {followed}
from (select id, due_at from ({branches}) x order by due_at, id limit ?) x
straight_join {delivery} d on d.id = x.id
straight_join {record} r on r.id = d.record_id
order by x.due_at, x.id"
        ));
        let handlers = json(handlers)?;
        let mut query = sqlx::query(sql);
        for part in parts {
            query = query
                .bind(part.cast_signed())
                .bind(offset)
                .bind(&handlers)
                .bind(limit);
        }
        let rows = query.bind(limit).fetch_all(connection).await?;
        rows.iter().map(fetched_delivery).collect()
    }

    async fn next_due(
        connection: &mut MySqlConnection,
        names: &Names,
        parts: &[u16],
        handlers: &[&str],
        offset: i64,
    ) -> Result<Option<i64>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
        let parts_table = "json_table(?, '$[*]' columns (part smallint path '$')) p";
        let sql = trusted(format!(
            "select timestampdiff(microsecond, utc_timestamp(6), min(due_at)) - ? from (
    select (
        select r.due_at from {record} r where r.status = 'scheduled' and r.part = p.part order by r.due_at limit 1
    ) as due_at from {parts_table}
    union all
    select (
        select d.due_at from {delivery} d
        where d.status = 'scheduled' and d.part = p.part and json_contains(?, json_quote(d.handler))
        order by d.due_at limit 1
    ) from {parts_table}
) x"
        ));
        let parts = json(parts)?;
        sqlx::query_scalar(sql)
            .bind(offset)
            .bind(&parts)
            .bind(json(handlers)?)
            .bind(&parts)
            .fetch_one(connection)
            .await
    }

    async fn blocked(
        connection: &mut MySqlConnection,
        names: &Names,
        lanes: &[LaneName],
    ) -> Result<Vec<LaneName>, sqlx::Error> {
        let delivery = names.table("delivery", '`');
        let sql = trusted(format!(
            "select l.part, cast(l.record_key as binary), l.handler from {LANES}
where exists (
    select 1 from {delivery} d
    where d.blocking = 1 and d.part = l.part and d.`key` = cast(l.record_key as binary) and d.handler = l.handler
)"
        ));
        let rows = sqlx::query(sql)
            .bind(json(lanes)?)
            .fetch_all(connection)
            .await?;
        rows.iter().map(lane_name).collect()
    }

    async fn blocked_parts(
        connection: &mut MySqlConnection,
        names: &Names,
        parts: &[u16],
    ) -> Result<Vec<u16>, sqlx::Error> {
        let delivery = names.table("delivery", '`');
        let sql = trusted(format!(
            "select p.part from json_table(?, '$[*]' columns (part smallint path '$')) p
where (select 1 from {delivery} d where d.blocking = 1 and d.part = p.part limit 1) = 1"
        ));
        let blocked: Vec<i16> = sqlx::query_scalar(sql)
            .bind(json(parts)?)
            .fetch_all(connection)
            .await?;
        Ok(blocked.into_iter().map(i16::cast_unsigned).collect())
    }

    async fn lanes(
        connection: &mut MySqlConnection,
        names: &Names,
        lanes: &[LaneName],
        per_lane: i64,
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        let mut found = Vec::new();
        // The connection keeps a prepared statement for each number of lanes.
        for lanes in lanes.chunks(64) {
            found.append(&mut some_lanes(connection, names, lanes, per_lane).await?);
        }
        Ok(found)
    }

    async fn runnable(
        connection: &mut MySqlConnection,
        names: &Names,
        parts: &[u16],
        handlers: &[&str],
        limit: i64,
    ) -> Result<Vec<LaneName>, sqlx::Error> {
        let delivery = names.table("delivery", '`');
        let sql = trusted(format!(
            "select d.part, d.`key`, d.handler from {delivery} d
where d.status = 'waiting' and d.blocking = 1 and d.part in ({}) and d.handler in ({}) and not exists (
    select 1 from {delivery} e
    where e.blocking = 1 and e.part = d.part and e.`key` = d.`key` and e.handler = d.handler and e.id < d.id
)
order by d.id limit ?",
            places(parts.len()),
            places(handlers.len()),
        ));
        let mut query = sqlx::query(sql);
        for part in parts {
            query = query.bind(part.cast_signed());
        }
        for handler in handlers {
            query = query.bind(*handler);
        }
        let rows = query.bind(limit).fetch_all(connection).await?;
        rows.iter().map(lane_name).collect()
    }

    async fn writers(_: &mut MySqlConnection, _: &Names) -> Result<Writers, sqlx::Error> {
        Ok(Writers::Unknown)
    }

    async fn unhandled(
        connection: &mut MySqlConnection,
        names: &Names,
        parts: &[u16],
    ) -> Result<Vec<String>, sqlx::Error> {
        let record = names.table("record", '`');
        let sql = trusted(format!(
            "select distinct event from {record} where status = 'unhandled' and part in ({})",
            places(parts.len())
        ));
        let mut query = sqlx::query_scalar(sql);
        for part in parts {
            query = query.bind(part.cast_signed());
        }
        query.fetch_all(connection).await
    }

    async fn paused(
        connection: &mut MySqlConnection,
        names: &Names,
    ) -> Result<Vec<String>, sqlx::Error> {
        let pause = names.table("pause", '`');
        sqlx::query_scalar(trusted(format!("select handler from {pause}")))
            .fetch_all(connection)
            .await
    }
}

async fn some_lanes(
    connection: &mut MySqlConnection,
    names: &Names,
    lanes: &[LaneName],
    per_lane: i64,
) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
    let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
    let branch = format!(
        "select ? as place, id from {delivery}
where blocking = 1 and part = ? and `key` = ? and handler = ? order by id limit ?"
    );
    let (branches, followed) = (for_each(lanes.len(), &branch), followed(names));
    let sql = trusted(format!(
        "select {RECORD}, {DELIVERY}, {followed}
from ({branches}) x
straight_join {delivery} d on d.id = x.id
straight_join {record} r on r.id = d.record_id
order by x.place, x.id"
    ));
    let mut query = sqlx::query(sql);
    for (place, lane) in (0_i64..).zip(lanes) {
        query = query
            .bind(place)
            .bind(lane.part.cast_signed())
            .bind(lane.key.as_bytes())
            .bind(&lane.handler)
            .bind(per_lane);
    }
    let rows = query.fetch_all(connection).await?;
    rows.iter().map(fetched_delivery).collect()
}

/// Whether other deliveries of the lane of `d` wait behind it.
fn followed(names: &Names) -> String {
    let delivery = names.table("delivery", '`');
    format!(
        "exists (
    select 1 from {delivery} f
    where f.blocking = 1 and f.part = d.part and f.`key` = d.`key` and f.handler = d.handler and f.id > d.id
)"
    )
}

fn lane_name(row: &MySqlRow) -> Result<LaneName, sqlx::Error> {
    Ok(LaneName {
        part: row.try_get::<i16, _>(0)?.cast_unsigned(),
        key: text(row.try_get(1)?)?,
        handler: row.try_get(2)?,
    })
}

fn fetched(row: &MySqlRow) -> Result<Fetched, sqlx::Error> {
    let headers: Option<&str> = row.try_get(7)?;
    let record = Record {
        id: row.try_get(1)?,
        event_id: row.try_get(2)?,
        event: row.try_get(3)?,
        version: u32::try_from(row.try_get::<i64, _>(4)?).unwrap_or(u32::MAX),
        key: text(row.try_get(5)?)?,
        payload: row.try_get(6)?,
        headers: headers.map_or_else(BTreeMap::new, super::super::headers),
        created_at: moment(row.try_get(8)?),
        max_retries: row
            .try_get::<Option<i64>, _>(9)?
            .map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
    };
    Ok(Fetched {
        part: row.try_get::<i16, _>(0)?.cast_unsigned(),
        record,
    })
}

fn fetched_delivery(row: &MySqlRow) -> Result<FetchedDelivery, sqlx::Error> {
    Ok(FetchedDelivery {
        handler: row.try_get(10)?,
        waiting: row.try_get(11)?,
        blocking: row.try_get(12)?,
        followed: row.try_get(16)?,
        attempt: Attempt {
            number: u32::try_from(row.try_get::<i64, _>(13)?).unwrap_or(u32::MAX),
            failure_count: u32::try_from(row.try_get::<i64, _>(14)?).unwrap_or(u32::MAX),
            first_failed_at: row.try_get::<Option<i64>, _>(15)?.map(moment),
        },
        fetched: fetched(row)?,
    })
}

/// What was put there by hand may be beyond what a timestamp can be.
fn moment(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

/// Keys are stored as bytes.
fn text(bytes: Vec<u8>) -> Result<String, sqlx::Error> {
    String::from_utf8(bytes).map_err(|error| sqlx::Error::Decode(error.into()))
}
