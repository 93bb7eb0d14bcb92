//! The statements by which the dispatcher reads due deliveries and parked lanes.

use serde::Serialize;

use super::{DueQuery, FetchedRecord, StatementSql};
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

/// The statements that read deliveries. `parts` are the partitions that this process owns, `handlers`
/// the ids of the handlers that may run here now.
pub trait DeliverySql: StatementSql {
    /// Retrying deliveries that are due, the most overdue first. Deliveries in memory are found again
    /// until they are settled, so this reads no record.
    fn due_deliveries(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        due: DueQuery<'_>,
    ) -> impl Future<Output = Result<Vec<DueDeliveryName>, sqlx::Error>> + Send;

    /// Those of these deliveries that are still retrying, with their records, the most overdue first.
    fn load_deliveries(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        ids: &[i64],
    ) -> impl Future<Output = Result<Vec<FetchedDelivery>, sqlx::Error>> + Send;

    /// Those of these lanes that have a blocking delivery.
    fn blocked_among(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        lanes: &[LaneName],
    ) -> impl Future<Output = Result<Vec<LaneName>, sqlx::Error>> + Send;

    /// The keys that have a blocking delivery, each once, with their partitions. At most `per_part`
    /// keys of one partition.
    fn blocking_keys(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        parts: &[u16],
        per_part: i64,
    ) -> impl Future<Output = Result<Vec<(u16, String)>, sqlx::Error>> + Send;

    /// The first `per_lane` blocking deliveries of each of these lanes, in the lane's order.
    fn lane_heads(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        lanes: &[LaneName],
        per_lane: i64,
    ) -> impl Future<Output = Result<Vec<FetchedDelivery>, sqlx::Error>> + Send;

    /// Lanes whose first blocking delivery is `waiting`, so that it can run.
    fn runnable_lanes(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        parts: &[u16],
        handlers: &[&str],
        order: RunnableOrder,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<LaneName>, sqlx::Error>> + Send;
}
