//! Deliveries in SQLite: due ones and parked lanes.

use sqlx::{Row as _, Sqlite, SqliteConnection, sqlite::SqliteRow};

use super::{
    NOW,
    fetch::{RECORD, fetched, moment},
};
use crate::{
    record::Attempt,
    store::{
        DeliverySql, DueDeliveryName, FetchedDelivery, LaneName, RunnableOrder, TableNames,
        settle::json, trusted,
    },
};

/// What a delivery is read from, after [`RECORD`]; `d` is its table.
const DELIVERY: &str =
    "d.handler, d.status = 'waiting', d.blocking, d.attempt, d.failure_count, d.first_failed_at";

impl DeliverySql for Sqlite {
    async fn due_deliveries(
        connection: &mut SqliteConnection,
        names: &TableNames,
        parts: &[u16],
        handlers: &[&str],
        offset: i64,
        limit: i64,
    ) -> Result<Vec<DueDeliveryName>, sqlx::Error> {
        let delivery = names.table("delivery", '"');
        let sql = trusted(format!(
            "select d.id, d.record_id, d.handler from json_each(?1) p cross join {delivery} d
where d.id in (
    select x.id from {delivery} x
    where x.part = p.value and x.status = 'retrying' and x.due_at <= {NOW} + ?3
        and x.handler in (select h.value from json_each(?2) h)
    order by x.due_at, x.id limit ?4
)
order by d.due_at, d.id limit ?4"
        ));
        let rows = sqlx::query_as(sql)
            .bind(json(parts)?)
            .bind(json(handlers)?)
            .bind(offset)
            .bind(limit)
            .fetch_all(connection)
            .await?;
        Ok(rows.into_iter().map(DueDeliveryName::of).collect())
    }

    async fn load_deliveries(
        connection: &mut SqliteConnection,
        names: &TableNames,
        ids: &[i64],
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
        let sql = trusted(format!(
            "select {RECORD}, {DELIVERY}, exists (
    select 1 from {delivery} f
    where f.blocking and f.part = d.part and f.key = d.key and f.handler = d.handler and f.id > d.id
)
from json_each(?1) p cross join {delivery} d cross join {record} r
where d.id = p.value and d.status = 'retrying' and r.id = d.record_id
order by d.due_at, d.id"
        ));
        let rows = sqlx::query(sql)
            .bind(json(ids)?)
            .fetch_all(connection)
            .await?;
        rows.iter().map(fetched_delivery).collect()
    }

    async fn blocked_among(
        connection: &mut SqliteConnection,
        names: &TableNames,
        lanes: &[LaneName],
    ) -> Result<Vec<LaneName>, sqlx::Error> {
        let delivery = names.table("delivery", '"');
        let sql = trusted(format!(
            "select l.value ->> 'part', l.value ->> 'key', l.value ->> 'handler' from json_each(?1) l
where exists (
    select 1 from {delivery} d
    where d.blocking and d.part = l.value ->> 'part' and d.key = l.value ->> 'key'
        and d.handler = l.value ->> 'handler'
)"
        ));
        let rows = sqlx::query(sql)
            .bind(json(lanes)?)
            .fetch_all(connection)
            .await?;
        rows.iter().map(lane_name).collect()
    }

    async fn blocking_keys(
        connection: &mut SqliteConnection,
        names: &TableNames,
        parts: &[u16],
        per_part: i64,
    ) -> Result<Vec<(u16, String)>, sqlx::Error> {
        let delivery = names.table("delivery", '"');
        let sql = trusted(format!(
            "select distinct d.part, d.key from {delivery} d where d.blocking and d.part = ?1
order by d.part, d.key limit ?2"
        ));
        let mut found = Vec::new();
        // There is nothing like a lateral join here, and a statement costs next to nothing.
        for part in parts {
            let keys = sqlx::query_as(sql.clone()).bind(part).bind(per_part);
            found.append(&mut keys.fetch_all(&mut *connection).await?);
        }
        Ok(found)
    }

    async fn lane_heads(
        connection: &mut SqliteConnection,
        names: &TableNames,
        lanes: &[LaneName],
        per_lane: i64,
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
        let sql = trusted(format!(
            "select {RECORD}, {DELIVERY}, exists (
    select 1 from {delivery} f
    where f.blocking and f.part = d.part and f.key = d.key and f.handler = d.handler and f.id > d.id
)
from json_each(?1) l cross join {delivery} d cross join {record} r
where d.id in (
    select x.id from {delivery} x
    where x.blocking and x.part = l.value ->> 'part' and x.key = l.value ->> 'key'
        and x.handler = l.value ->> 'handler'
    order by x.id limit ?2
) and r.id = d.record_id
order by l.key, d.id"
        ));
        let rows = sqlx::query(sql)
            .bind(json(lanes)?)
            .bind(per_lane)
            .fetch_all(connection)
            .await?;
        rows.iter().map(fetched_delivery).collect()
    }

    async fn runnable_lanes(
        connection: &mut SqliteConnection,
        names: &TableNames,
        parts: &[u16],
        handlers: &[&str],
        expected: RunnableOrder,
        limit: i64,
    ) -> Result<Vec<LaneName>, sqlx::Error> {
        let delivery = names.table("delivery", '"');
        let sql = match expected {
            RunnableOrder::OldestFirst => format!(
                "select d.part, d.key, d.handler from {delivery} d
where d.part in (select p.value from json_each(?1) p) and d.handler in (select h.value from json_each(?2) h)
    and d.status = 'waiting' and d.blocking and not exists (
        select 1 from {delivery} e
        where e.blocking and e.part = d.part and e.key = d.key and e.handler = d.handler and e.id < d.id
    )
order by d.id limit ?3"
            ),
            RunnableOrder::EveryLane => format!(
                "select d.part, d.key, d.handler from (
    select min(id) as id from {delivery}
    where blocking and part in (select p.value from json_each(?1) p) and handler in (select h.value from json_each(?2) h)
    group by part, key, handler
) first join {delivery} d on d.id = first.id
where d.status = 'waiting'
order by d.id limit ?3"
            ),
        };
        let rows = sqlx::query(trusted(sql))
            .bind(json(parts)?)
            .bind(json(handlers)?)
            .bind(limit)
            .fetch_all(connection)
            .await?;
        rows.iter().map(lane_name).collect()
    }
}

fn lane_name(row: &SqliteRow) -> Result<LaneName, sqlx::Error> {
    Ok(LaneName {
        part: row.try_get(0)?,
        key: row.try_get(1)?,
        handler: row.try_get(2)?,
    })
}

fn fetched_delivery(row: &SqliteRow) -> Result<FetchedDelivery, sqlx::Error> {
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
