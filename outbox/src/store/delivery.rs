//! The statements by which the dispatcher reads due deliveries and parked lanes.

use serde::Serialize;

use super::{Dialect, DueQuery, FetchedRecord, Statements, call::read};
use crate::record::Attempt;

/// A delivery with its record, as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchedDelivery {
    pub(crate) handler: String,
    /// The status is `waiting`: the delivery runs as soon as it is the first of its lane.
    pub(crate) waiting: bool,
    /// Whether later records of its lane wait behind it.
    pub(crate) blocking: bool,
    /// Whether other deliveries of its lane wait behind it already.
    pub(crate) followed: bool,
    pub(crate) attempt: Attempt,
    pub(crate) fetched: FetchedRecord,
}

/// A due delivery, without its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDeliveryName {
    pub(crate) id: i64,
    pub(crate) record_id: i64,
    pub(crate) handler: String,
}

/// A lane by its stored name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct LaneName {
    pub(crate) part: u16,
    pub(crate) key: String,
    pub(crate) handler: String,
}

/// How to search for runnable lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnableOrder {
    /// Most waiting deliveries can run: check one after the other, the oldest first, whether it is
    /// the first of its lane, until the limit is reached.
    OldestFirst,
    /// Hardly any waiting delivery can run: look up the first delivery of every lane, in one walk of
    /// the index of blocking deliveries.
    EveryLane,
}

/// The statements that read deliveries. `partitions` are those that this process owns, `handlers` the
/// ids of the handlers that may run here now.
pub trait DeliverySql: Dialect {
    /// Retrying deliveries that are due, the most overdue first. Deliveries in memory are found again
    /// until they are settled, so this reads no record.
    fn due_deliveries(
        connection: &mut Self::Connection,
        sql: &Statements,
        due: DueQuery<'_>,
    ) -> impl Future<Output = Result<Vec<DueDeliveryName>, sqlx::Error>> + Send {
        async move { due.read::<Self, _>(connection, &sql.due_deliveries).await }
    }

    /// Those of these deliveries that are still retrying, with their records, the most overdue first.
    fn load_deliveries(
        connection: &mut Self::Connection,
        sql: &Statements,
        ids: &[i64],
    ) -> impl Future<Output = Result<Vec<FetchedDelivery>, sqlx::Error>> + Send {
        async move { read::<Self, _>(connection, sql.load_deliveries.bind("ids", ids)).await }
    }

    /// Those of these lanes that have a blocking delivery.
    fn blocked_among(
        connection: &mut Self::Connection,
        sql: &Statements,
        lanes: &[LaneName],
    ) -> impl Future<Output = Result<Vec<LaneName>, sqlx::Error>> + Send {
        async move { read::<Self, _>(connection, sql.blocked_among.bind("lanes", lanes)).await }
    }

    /// The keys that have a blocking delivery, each once, with their partitions. At most
    /// `per_partition` keys of one partition.
    fn blocking_keys(
        connection: &mut Self::Connection,
        sql: &Statements,
        partitions: &[u16],
        per_partition: i64,
    ) -> impl Future<Output = Result<Vec<(u16, String)>, sqlx::Error>> + Send {
        async move {
            if partitions.is_empty() {
                return Ok(Vec::new());
            }
            let keys = sql.blocking_keys.bind("partitions", partitions);
            let keys = keys.bind("per_partition", per_partition);
            read::<Self, _>(connection, keys).await
        }
    }

    /// The first `per_lane` blocking deliveries of each of these lanes, in the lane's order.
    fn lane_heads(
        connection: &mut Self::Connection,
        sql: &Statements,
        lanes: &[LaneName],
        per_lane: i64,
    ) -> impl Future<Output = Result<Vec<FetchedDelivery>, sqlx::Error>> + Send {
        async move {
            let mut found = Vec::new();
            for lanes in lanes.chunks(Self::WORDS.lanes_at_once) {
                let heads = sql.lane_heads.bind("lanes", lanes);
                let heads = heads.bind("per_lane", per_lane);
                found.append(&mut read::<Self, _>(connection, heads).await?);
            }
            Ok(found)
        }
    }

    /// Lanes whose first blocking delivery is `waiting`, so that it can run.
    fn runnable_lanes(
        connection: &mut Self::Connection,
        sql: &Statements,
        partitions: &[u16],
        handlers: &[&str],
        order: RunnableOrder,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<LaneName>, sqlx::Error>> + Send {
        async move {
            let statement = match order {
                RunnableOrder::OldestFirst => &sql.runnable_oldest_first,
                RunnableOrder::EveryLane => &sql.runnable_every_lane,
            };
            let lanes = statement.bind("partitions", partitions);
            let lanes = lanes.bind("handlers", handlers).bind("limit", limit);
            read::<Self, _>(connection, lanes).await
        }
    }
}
