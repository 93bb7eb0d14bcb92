//! Reading deliveries from SQLite: due ones and parked lanes.

use sqlx::{Sqlite, SqliteConnection};

use super::SqliteStatements;
use crate::store::{
    DeliverySql, DueDeliveryName, DueQuery, FetchedDelivery, LaneName, RunnableOrder,
    columns::read_all, settle::json,
};

impl DeliverySql for Sqlite {
    async fn due_deliveries(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        due: DueQuery<'_>,
    ) -> Result<Vec<DueDeliveryName>, sqlx::Error> {
        let rows = sqlx::query(sql.due_deliveries.clone())
            .bind(json(due.parts)?)
            .bind(json(due.handlers)?)
            .bind(due.offset)
            .bind(due.limit)
            .fetch_all(connection)
            .await?;
        read_all(&rows)
    }

    async fn load_deliveries(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        ids: &[i64],
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        let load = sqlx::query(sql.load_deliveries.clone()).bind(json(ids)?);
        read_all(&load.fetch_all(connection).await?)
    }

    async fn blocked_among(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        lanes: &[LaneName],
    ) -> Result<Vec<LaneName>, sqlx::Error> {
        let blocked = sqlx::query(sql.blocked_among.clone()).bind(json(lanes)?);
        read_all(&blocked.fetch_all(connection).await?)
    }

    async fn blocking_keys(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        parts: &[u16],
        per_part: i64,
    ) -> Result<Vec<(u16, String)>, sqlx::Error> {
        let mut rows = Vec::new();
        for part in parts {
            let keys = sqlx::query(sql.blocking_keys.clone());
            let keys = keys.bind(part).bind(per_part);
            rows.append(&mut keys.fetch_all(&mut *connection).await?);
        }
        read_all(&rows)
    }

    async fn lane_heads(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
        lanes: &[LaneName],
        per_lane: i64,
    ) -> Result<Vec<FetchedDelivery>, sqlx::Error> {
        let heads = sqlx::query(sql.lane_heads.clone());
        let heads = heads.bind(json(lanes)?).bind(per_lane);
        read_all(&heads.fetch_all(connection).await?)
    }

    async fn runnable_lanes(
        connection: &mut SqliteConnection,
        sql: &SqliteStatements,
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
            .bind(json(parts)?)
            .bind(json(handlers)?)
            .bind(limit)
            .fetch_all(connection)
            .await?;
        read_all(&rows)
    }
}
