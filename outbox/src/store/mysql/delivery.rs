//! Reading deliveries from MySQL: due ones and parked lanes.

use sqlx::{MySql, MySqlConnection};

use super::MySqlStatements;
use crate::store::{
    DeliverySql, DueDeliveryName, DueQuery, FetchedDelivery, LaneName, RunnableOrder,
    columns::read_all, settle::json,
};

impl DeliverySql for MySql {
    async fn due_deliveries(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        due: DueQuery<'_>,
    ) -> Result<Vec<DueDeliveryName>, sqlx::Error> {
        if due.parts.is_empty() {
            return Ok(Vec::new());
        }
        let handlers = json(due.handlers)?;
        let mut query = sqlx::query(sql.due_deliveries.times(due.parts.len()));
        for part in due.parts {
            query = query.bind(part.cast_signed()).bind(due.offset);
            query = query.bind(&handlers).bind(due.limit);
        }
        read_all(&query.bind(due.limit).fetch_all(connection).await?)
    }

    async fn load_deliveries(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        ids: &[i64],
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        let load = sqlx::query(sql.load_deliveries.clone()).bind(json(ids)?);
        read_all(&load.fetch_all(connection).await?)
    }

    async fn blocked_among(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        lanes: &[LaneName],
    ) -> Result<Vec<LaneName>, sqlx::Error> {
        let blocked = sqlx::query(sql.blocked_among.clone()).bind(json(lanes)?);
        read_all(&blocked.fetch_all(connection).await?)
    }

    async fn blocking_keys(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        parts: &[u16],
        per_part: i64,
    ) -> Result<Vec<(u16, String)>, sqlx::Error> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = sqlx::query(sql.blocking_keys.times(parts.len()));
        for part in parts {
            query = query.bind(part.cast_signed()).bind(per_part);
        }
        read_all(&query.fetch_all(connection).await?)
    }

    async fn lane_heads(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        lanes: &[LaneName],
        per_lane: i64,
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        let mut rows = Vec::new();
        // The connection keeps a prepared statement for each number of lanes.
        for lanes in lanes.chunks(64) {
            let mut query = sqlx::query(sql.lane_heads.times(lanes.len()));
            for (place, lane) in (0_i64..).zip(lanes) {
                query = query
                    .bind(place)
                    .bind(lane.part.cast_signed())
                    .bind(lane.key.as_bytes())
                    .bind(&lane.handler)
                    .bind(per_lane);
            }
            rows.append(&mut query.fetch_all(&mut *connection).await?);
        }
        read_all(&rows)
    }

    async fn runnable_lanes(
        connection: &mut MySqlConnection,
        sql: &MySqlStatements,
        parts: &[u16],
        handlers: &[&str],
        order: RunnableOrder,
        limit: i64,
    ) -> Result<Vec<LaneName>, sqlx::Error> {
        let statement = match order {
            RunnableOrder::OldestFirst => &sql.runnable_oldest_first,
            RunnableOrder::EveryLane => &sql.runnable_every_lane,
        };
        let mut query = sqlx::query(statement.times_each([parts.len(), handlers.len()]));
        for part in parts {
            query = query.bind(part.cast_signed());
        }
        for handler in handlers {
            query = query.bind(*handler);
        }
        read_all(&query.bind(limit).fetch_all(connection).await?)
    }
}
