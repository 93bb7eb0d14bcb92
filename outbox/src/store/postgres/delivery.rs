//! Deliveries in PostgreSQL: due ones and parked lanes.

use sqlx::{PgConnection, Postgres, Row as _, postgres::PgRow};

use super::{
    fetch::{Moment, RECORD, fetched},
    signed,
};
use crate::{
    record::Attempt,
    store::{
        DeliverySql, DueDeliveryName, FetchedDelivery, LaneName, RunnableOrder, TableNames, trusted,
    },
};

/// What a delivery is read from, after [`RECORD`]; `d` is its table.
const DELIVERY: &str =
    "d.handler, d.status = 'waiting', d.blocking, d.attempt, d.failure_count, d.first_failed_at";

impl DeliverySql for Postgres {
    async fn due_deliveries(
        connection: &mut PgConnection,
        names: &TableNames,
        parts: &[u16],
        handlers: &[&str],
        offset: i64,
        limit: i64,
    ) -> Result<Vec<DueDeliveryName>, sqlx::Error> {
        let delivery = names.table("delivery", '"');
        let sql = trusted(format!(
            "select d.id, d.record_id, d.handler from unnest($1::smallint[]) as p (part)
cross join lateral (
    select d.id, d.record_id, d.handler, d.due_at from {delivery} d
    where d.part = p.part and d.status = 'retrying' and d.handler = any($2)
        and d.due_at <= statement_timestamp() + $3 * interval '1 microsecond'
    order by d.due_at, d.id limit $4
) d order by d.due_at, d.id limit $4"
        ));
        let rows = sqlx::query_as(sql)
            .bind(signed(parts))
            .bind(handlers)
            .bind(offset)
            .bind(limit)
            .fetch_all(connection)
            .await?;
        Ok(rows.into_iter().map(DueDeliveryName::of).collect())
    }

    async fn load_deliveries(
        connection: &mut PgConnection,
        names: &TableNames,
        ids: &[i64],
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
        let sql = trusted(format!(
            "select {RECORD}, {DELIVERY}, exists (
    select 1 from {delivery} f
    where f.blocking and f.part = d.part and f.key = d.key and f.handler = d.handler and f.id > d.id
)
from {delivery} d join {record} r on r.id = d.record_id
where d.id = any((select $1::bigint[])::bigint[]) and d.status = 'retrying'
order by d.due_at, d.id"
        ));
        let rows = sqlx::query(sql).bind(ids).fetch_all(connection).await?;
        rows.iter().map(fetched_delivery).collect()
    }

    async fn blocked_among(
        connection: &mut PgConnection,
        names: &TableNames,
        lanes: &[LaneName],
    ) -> Result<Vec<LaneName>, sqlx::Error> {
        let delivery = names.table("delivery", '"');
        let sql = trusted(format!(
            "select l.part, l.key, l.handler from unnest($1::smallint[], $2::text[], $3::text[]) as l (part, key, handler)
where exists (
    select 1 from {delivery} d
    where d.blocking and d.part = l.part and d.key = l.key and d.handler = l.handler
)"
        ));
        let (parts, keys, handlers) = columns(lanes);
        let rows = sqlx::query(sql)
            .bind(parts)
            .bind(keys)
            .bind(handlers)
            .fetch_all(connection)
            .await?;
        rows.iter().map(lane_name).collect()
    }

    async fn blocking_keys(
        connection: &mut PgConnection,
        names: &TableNames,
        parts: &[u16],
        per_part: i64,
    ) -> Result<Vec<(u16, String)>, sqlx::Error> {
        let delivery = names.table("delivery", '"');
        let sql = trusted(format!(
            "select d.part, d.key from unnest($1::smallint[]) as p (part)
cross join lateral (
    select distinct d.part, d.key from {delivery} d where d.blocking and d.part = p.part
    order by d.part, d.key limit $2
) d"
        ));
        let keys: Vec<(i16, String)> = sqlx::query_as(sql)
            .bind(signed(parts))
            .bind(per_part)
            .fetch_all(connection)
            .await?;
        let keys = keys.into_iter();
        Ok(keys
            .map(|(part, key)| (part.cast_unsigned(), key))
            .collect())
    }

    async fn lane_heads(
        connection: &mut PgConnection,
        names: &TableNames,
        lanes: &[LaneName],
        per_lane: i64,
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '"'), names.table("delivery", '"'));
        let of_lane = lane_in_order("d", "l");
        // One more than asked for tells whether the last one is followed.
        let sql = trusted(format!(
            "select {RECORD}, {DELIVERY}, d.followed
from unnest($1::smallint[], $2::text[], $3::text[]) with ordinality as l (part, key, handler, place)
cross join lateral (
    select d.*, lead(d.id) over (order by d.id) is not null as followed from (
        select * from {delivery} d where {of_lane} limit $4 + 1
    ) d order by d.id limit $4
) d
join {record} r on r.id = d.record_id
order by l.place, d.id"
        ));
        let (parts, keys, handlers) = columns(lanes);
        let rows = sqlx::query(sql)
            .bind(parts)
            .bind(keys)
            .bind(handlers)
            .bind(per_lane)
            .fetch_all(connection)
            .await?;
        rows.iter().map(fetched_delivery).collect()
    }

    async fn runnable_lanes(
        connection: &mut PgConnection,
        names: &TableNames,
        parts: &[u16],
        handlers: &[&str],
        expected: RunnableOrder,
        limit: i64,
    ) -> Result<Vec<LaneName>, sqlx::Error> {
        let delivery = names.table("delivery", '"');
        let of_lane = lane_in_order("e", "d");
        let sql = match expected {
            RunnableOrder::OldestFirst => format!(
                "select d.part, d.key, d.handler from {delivery} d
where d.status = 'waiting' and d.blocking and d.part = any($1) and d.handler = any($2) and d.id = (
    select e.id from {delivery} e where {of_lane} limit 1
)
order by d.id limit $3"
            ),
            // Lateral: the walk of each partition is in the order of the index, and few enough lanes
            // are expected of it that the table is not read as a whole to find their rows.
            RunnableOrder::EveryLane => format!(
                "select d.part, d.key, d.handler from unnest($1::smallint[]) as p (part)
cross join lateral (
    select min(e.id) as id from {delivery} e where e.blocking and e.part = p.part and e.handler = any($2)
    group by e.part, e.key, e.handler
) first
join {delivery} d on d.id = first.id
where d.status = 'waiting'
order by d.id limit $3"
            ),
        };
        let rows = sqlx::query(trusted(sql))
            .bind(signed(parts))
            .bind(handlers)
            .bind(limit)
            .fetch_all(connection)
            .await?;
        rows.iter().map(lane_name).collect()
    }
}

fn columns(lanes: &[LaneName]) -> (Vec<i16>, Vec<&str>, Vec<&str>) {
    let parts = lanes.iter().map(|lane| lane.part.cast_signed()).collect();
    let keys = lanes.iter().map(|lane| &*lane.key).collect();
    let handlers = lanes.iter().map(|lane| &*lane.handler).collect();
    (parts, keys, handlers)
}

fn lane_name(row: &PgRow) -> Result<LaneName, sqlx::Error> {
    Ok(LaneName {
        part: row.try_get::<i16, _>(0)?.cast_unsigned(),
        key: row.try_get(1)?,
        handler: row.try_get(2)?,
    })
}

fn fetched_delivery(row: &PgRow) -> Result<FetchedDelivery, sqlx::Error> {
    let first_failed_at: Option<Moment> = row.try_get(15)?;
    Ok(FetchedDelivery {
        handler: row.try_get(10)?,
        waiting: row.try_get(11)?,
        blocking: row.try_get(12)?,
        followed: row.try_get(16)?,
        attempt: Attempt {
            number: u32::try_from(row.try_get::<i64, _>(13)?).unwrap_or(u32::MAX),
            failure_count: u32::try_from(row.try_get::<i64, _>(14)?).unwrap_or(u32::MAX),
            first_failed_at: first_failed_at.map(|moment| moment.0),
        },
        fetched: fetched(row)?,
    })
}

/// The condition and the order of what is in the lane of another row. Compared and ordered by all
/// columns of the index of lanes: by its id alone, the planner would rather look for the first of
/// a lane along the primary key, through all of the longest lane.
pub(super) fn lane_in_order(of: &str, other: &str) -> String {
    let lane = |of: &str| format!("({of}.part, {of}.key, {of}.handler)");
    let (lane, other) = (lane(of), lane(other));
    format!(
        "{of}.blocking and {lane} >= {other} and {lane} <= {other} order by {of}.part, {of}.key, {of}.handler, {of}.id"
    )
}
