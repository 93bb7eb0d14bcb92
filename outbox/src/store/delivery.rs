//! The statements with which the fetcher reads due deliveries and parked lanes.

use serde::Serialize;

use super::{Dialect, DueQuery, FetchedRecord, Statements, call::read};
use crate::record::{Attempt, Partition};

/// A delivery with its record, as the fetcher read it.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchedDelivery {
    pub(crate) handler: String,
    /// The status is `waiting`: the delivery may run when it is the first of its lane.
    pub(crate) is_waiting: bool,
    /// Whether later records of its lane must wait for it.
    pub(crate) blocking: bool,
    /// Whether the table has later deliveries of its lane.
    pub(crate) has_followers: bool,
    pub(crate) attempt: Attempt,
    pub(crate) record: FetchedRecord,
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
    #[serde(rename = "part")]
    pub(crate) partition: Partition,
    pub(crate) key: String,
    pub(crate) handler: String,
}

/// How to search for runnable lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnableOrder {
    /// For the case that most waiting deliveries can run: checks waiting deliveries from the oldest
    /// on, whether each is the first of its lane, until the limit is reached.
    OldestFirst,
    /// For the case that hardly any waiting delivery can run: looks up the first delivery of every
    /// lane in one scan of the index of blocking deliveries.
    EveryLane,
}

/// The statements that read deliveries. `partitions` are the partitions of this process. `handlers`
/// are the ids of the handlers that may run in this process now.
pub trait DeliverySql: Dialect {
    /// Retrying deliveries that are due, the most overdue first. The statement finds deliveries in
    /// memory again until they are settled, so it reads no records.
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
        partitions: &[Partition],
        per_partition: i64,
    ) -> impl Future<Output = Result<Vec<(Partition, String)>, sqlx::Error>> + Send {
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
            for lanes in lanes.chunks(Self::WORDS.lanes_per_statement) {
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
        partitions: &[Partition],
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
