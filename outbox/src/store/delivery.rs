//! What the dispatcher reads of deliveries: those that have become due, lanes in which something is
//! parked.

use serde::Serialize;

use super::{DueQuery, FetchedRecord, StatementSql};
use crate::record::Attempt;

/// A record for one handler that did not finish with it before.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchedDelivery {
    pub(crate) handler: String,
    /// `waiting` rows run as soon as nothing stands before them in their lane.
    pub(crate) waiting: bool,
    /// Whether later records of its lane wait behind it.
    pub(crate) blocking: bool,
    /// Whether other deliveries of its lane wait behind it already.
    pub(crate) followed: bool,
    pub(crate) attempt: Attempt,
    pub(crate) fetched: FetchedRecord,
}

/// A delivery whose time has come, by its names only.
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

/// What a look for runnable lanes will find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnableOrder {
    /// Most that wait can run: each is asked whether it is the first of its lane, the oldest
    /// first, until there are enough.
    OldestFirst,
    /// Hardly any can: the first of every lane is looked up, in one walk through all that block.
    EveryLane,
}

/// The statements that read deliveries. `parts` are the
/// partitions that this process owns, `handlers` the ids of the handlers that may run here now.
pub trait DeliverySql: StatementSql {
    /// Scheduled deliveries whose time has come, the most overdue first. Those in memory are found
    /// again and again until they are written, so nothing is read of them but their names.
    fn due_deliveries(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        due: DueQuery<'_>,
    ) -> impl Future<Output = Result<Vec<DueDeliveryName>, sqlx::Error>> + Send;

    /// Those of these deliveries that are still scheduled, the most overdue first.
    fn load_deliveries(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        ids: &[i64],
    ) -> impl Future<Output = Result<Vec<FetchedDelivery>, sqlx::Error>> + Send;

    /// Those of these lanes in which something blocks.
    fn blocked_among(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        lanes: &[LaneName],
    ) -> impl Future<Output = Result<Vec<LaneName>, sqlx::Error>> + Send;

    /// The keys in which something blocks, each once with its partition: at most `per_part` of each
    /// of these.
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

    /// Lanes whose first blocking delivery is `waiting`: nothing stands before it, so it can run.
    fn runnable_lanes(
        connection: &mut Self::Connection,
        sql: &Self::Statements,
        parts: &[u16],
        handlers: &[&str],
        order: RunnableOrder,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<LaneName>, sqlx::Error>> + Send;
}
