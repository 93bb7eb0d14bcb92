//! Deliveries in MySQL: due ones and parked lanes.

use sqlx::{MySql, MySqlConnection};

use super::{
    fetch::for_each,
    places,
    rows::{DELIVERY, RECORD, fetched_delivery, lane_name, part_and_key},
};
use crate::store::{
    DeliverySql, DueDeliveryName, FetchedDelivery, LaneName, RunnableOrder, TableNames,
    settle::json, trusted,
};

/// Lanes that were given as JSON.
const LANES: &str = "json_table(?, '$[*]' columns (
    place for ordinality,
    part smallint path '$.part',
    record_key varchar(255) character set utf8mb4 path '$.key',
    handler varchar(255) character set utf8mb4 path '$.handler'
)) l";

impl DeliverySql for MySql {
    async fn due_deliveries(
        connection: &mut MySqlConnection,
        names: &TableNames,
        parts: &[u16],
        handlers: &[&str],
        offset: i64,
        limit: i64,
    ) -> Result<Vec<DueDeliveryName>, sqlx::Error> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let delivery = names.table("delivery", '`');
        let branch = format!(
            "select id, record_id, handler, due_at from {delivery}
where status = 'retrying' and part = ? and due_at <= utc_timestamp(6) + interval ? microsecond
    and json_contains(?, json_quote(handler))
order by due_at, id limit ?"
        );
        let branches = for_each(parts.len(), &branch);
        let sql = trusted(format!(
            "select id, record_id, handler from ({branches}) x order by due_at, id limit ?"
        ));
        let handlers = json(handlers)?;
        let mut query = sqlx::query_as(sql);
        for part in parts {
            query = query
                .bind(part.cast_signed())
                .bind(offset)
                .bind(&handlers)
                .bind(limit);
        }
        let rows = query.bind(limit).fetch_all(connection).await?;
        Ok(rows.into_iter().map(DueDeliveryName::of).collect())
    }

    async fn load_deliveries(
        connection: &mut MySqlConnection,
        names: &TableNames,
        ids: &[i64],
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        let (record, delivery) = (names.table("record", '`'), names.table("delivery", '`'));
        let followed = followed(names);
        let sql = trusted(format!(
            "select {RECORD}, {DELIVERY}, {followed}
from json_table(?, '$[*]' columns (id bigint path '$')) x
straight_join {delivery} d on d.id = x.id and d.status = 'retrying'
straight_join {record} r on r.id = d.record_id
order by d.due_at, d.id"
        ));
        let rows = sqlx::query(sql)
            .bind(json(ids)?)
            .fetch_all(connection)
            .await?;
        rows.iter().map(fetched_delivery).collect()
    }

    async fn blocked_among(
        connection: &mut MySqlConnection,
        names: &TableNames,
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

    async fn blocking_keys(
        connection: &mut MySqlConnection,
        names: &TableNames,
        parts: &[u16],
        per_part: i64,
    ) -> Result<Vec<(u16, String)>, sqlx::Error> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let (delivery, lane) = (names.table("delivery", '`'), names.plain("delivery_lane"));
        let branch = format!(
            "select distinct part, `key` from {delivery} force index (`{lane}`)
where blocking = 1 and part = ? order by part, `key` limit ?"
        );
        let mut query = sqlx::query(trusted(for_each(parts.len(), &branch)));
        for part in parts {
            query = query.bind(part.cast_signed()).bind(per_part);
        }
        let rows = query.fetch_all(connection).await?;
        rows.iter().map(part_and_key).collect()
    }

    async fn lane_heads(
        connection: &mut MySqlConnection,
        names: &TableNames,
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

    async fn runnable_lanes(
        connection: &mut MySqlConnection,
        names: &TableNames,
        parts: &[u16],
        handlers: &[&str],
        expected: RunnableOrder,
        limit: i64,
    ) -> Result<Vec<LaneName>, sqlx::Error> {
        let (delivery, waiting, lane) = (
            names.table("delivery", '`'),
            names.plain("delivery_waiting"),
            names.plain("delivery_lane"),
        );
        let (of_parts, of_handlers) = (places(parts.len()), places(handlers.len()));
        // Forced: otherwise the whole table may be read in the order of its ids.
        let sql = match expected {
            RunnableOrder::OldestFirst => format!(
                "select d.part, d.`key`, d.handler from {delivery} d force index (`{waiting}`)
where d.status = 'waiting' and d.blocking = 1 and d.part in ({of_parts}) and d.handler in ({of_handlers}) and not exists (
    select 1 from {delivery} e
    where e.blocking = 1 and e.part = d.part and e.`key` = d.`key` and e.handler = d.handler and e.id < d.id
)
order by d.id limit ?"
            ),
            RunnableOrder::EveryLane => format!(
                "select d.part, d.`key`, d.handler from (
    select min(id) as id from {delivery} force index (`{lane}`)
    where blocking = 1 and part in ({of_parts}) and handler in ({of_handlers})
    group by part, `key`, handler
) first straight_join {delivery} d force index (primary) on d.id = first.id
where d.status = 'waiting'
order by d.id limit ?"
            ),
        };
        let mut query = sqlx::query(trusted(sql));
        for part in parts {
            query = query.bind(part.cast_signed());
        }
        for handler in handlers {
            query = query.bind(*handler);
        }
        let rows = query.bind(limit).fetch_all(connection).await?;
        rows.iter().map(lane_name).collect()
    }
}

async fn some_lanes(
    connection: &mut MySqlConnection,
    names: &TableNames,
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
fn followed(names: &TableNames) -> String {
    let delivery = names.table("delivery", '`');
    format!(
        "exists (
    select 1 from {delivery} f
    where f.blocking = 1 and f.part = d.part and f.`key` = d.`key` and f.handler = d.handler and f.id > d.id
)"
    )
}
