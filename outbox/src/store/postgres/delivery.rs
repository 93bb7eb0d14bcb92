//! Reading deliveries from PostgreSQL: due ones and parked lanes.

use sqlx::{PgConnection, Postgres};

use super::{PostgresStatements, signed};
use crate::store::{
    DeliverySql, DueDeliveryName, DueQuery, FetchedDelivery, LaneName, RunnableOrder,
    columns::read_all,
};

impl DeliverySql for Postgres {
    async fn due_deliveries(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        due: DueQuery<'_>,
    ) -> Result<Vec<DueDeliveryName>, sqlx::Error> {
        let rows = sqlx::query(sql.due_deliveries.clone())
            .bind(signed(due.parts))
            .bind(due.handlers)
            .bind(due.offset)
            .bind(due.limit)
            .fetch_all(connection)
            .await?;
        read_all(&rows)
    }

    async fn load_deliveries(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        ids: &[i64],
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        let load = sqlx::query(sql.load_deliveries.clone()).bind(ids);
        read_all(&load.fetch_all(connection).await?)
    }

    async fn blocked_among(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        lanes: &[LaneName],
    ) -> Result<Vec<LaneName>, sqlx::Error> {
        let (parts, keys, handlers) = columns(lanes);
        let rows = sqlx::query(sql.blocked_among.clone())
            .bind(parts)
            .bind(keys)
            .bind(handlers)
            .fetch_all(connection)
            .await?;
        read_all(&rows)
    }

    async fn blocking_keys(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        parts: &[u16],
        per_part: i64,
    ) -> Result<Vec<(u16, String)>, sqlx::Error> {
        let keys = sqlx::query(sql.blocking_keys.clone());
        let keys = keys.bind(signed(parts)).bind(per_part);
        read_all(&keys.fetch_all(connection).await?)
    }

    async fn lane_heads(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        lanes: &[LaneName],
        per_lane: i64,
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        let (parts, keys, handlers) = columns(lanes);
        let rows = sqlx::query(sql.lane_heads.clone())
            .bind(parts)
            .bind(keys)
            .bind(handlers)
            .bind(per_lane)
            .fetch_all(connection)
            .await?;
        read_all(&rows)
    }

    async fn runnable_lanes(
        connection: &mut PgConnection,
        sql: &PostgresStatements,
        parts: &[u16],
        handlers: &[&str],
        order: RunnableOrder,
        limit: i64,
    ) -> Result<Vec<LaneName>, sqlx::Error> {
        let statement = match order {
            RunnableOrder::OldestFirst => &sql.runnable_oldest_first,
            RunnableOrder::EveryLane => &sql.runnable_every_lane,
        };
        let rows = sqlx::query(statement.clone())
            .bind(signed(parts))
            .bind(handlers)
            .bind(limit)
            .fetch_all(connection)
            .await?;
        read_all(&rows)
    }
}

fn columns(lanes: &[LaneName]) -> (Vec<i16>, Vec<&str>, Vec<&str>) {
    let parts = lanes.iter().map(|lane| lane.part.cast_signed()).collect();
    let keys = lanes.iter().map(|lane| &*lane.key).collect();
    let handlers = lanes.iter().map(|lane| &*lane.handler).collect();
    (parts, keys, handlers)
}
