//! What the dispatcher reads: pending records, what has become due, parked lanes.

use jiff::Timestamp;
use serde::Serialize;

use super::Names;
use crate::{Attempt, Record};

/// A partition's pending records with ids above `after`, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Page {
    pub(crate) part: u16,
    pub(crate) after: i64,
}

/// A record that is in memory already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    pub(crate) part: u16,
    pub(crate) id: i64,
}

/// A record as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    pub(crate) part: u16,
    pub(crate) record: Record,
}

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
    pub(crate) fetched: Fetched,
}

/// A delivery whose time has come, by its names only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDelivery {
    pub(crate) id: i64,
    pub(crate) record_id: i64,
    pub(crate) handler: String,
}

impl DueDelivery {
    pub(crate) fn of((id, record_id, handler): (i64, i64, String)) -> Self {
        Self {
            id,
            record_id,
            handler,
        }
    }
}

/// A lane by its stored name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct LaneName {
    pub(crate) part: u16,
    pub(crate) key: String,
    pub(crate) handler: String,
}

/// Which transactions may still bring a record with a lower id than one that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writers {
    /// These. Each name stands for one transaction and is never used again.
    Known {
        names: Vec<String>,
        /// The highest id that had been drawn before they were asked for, if the database tells:
        /// whoever is not among them brings higher ones only.
        drawn: Option<i64>,
    },
    /// The database does not say. What its clock shows.
    Unknown { clock: Timestamp },
    /// None ever: ids are committed in their order.
    InOrder,
}

/// What a look for runnable lanes will find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Most that wait can run: each is asked whether it is the first of its lane, the oldest
    /// first, until there are enough.
    Many,
    /// Hardly any can: the first of every lane is looked up, in one walk through all that block.
    Few,
}

/// The statements that read. `parts` are the partitions that this process owns; `handlers` the
/// ids of those that may run here now. `offset` is added to the database's clock, in
/// microseconds: zero outside of tests.
pub trait FetchSql: sqlx::Database {
    /// Pending records of these pages without the `known` ones, at most `per_page` of each and
    /// `limit` in all; of each partition in the order of their ids, as one moment saw them.
    #[doc(hidden)]
    fn pending(
        connection: &mut Self::Connection,
        names: &Names,
        pages: &[Page],
        known: &[Known],
        per_page: i64,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<Fetched>, sqlx::Error>> + Send;

    /// Scheduled records whose time has come, the most overdue first.
    #[doc(hidden)]
    fn due_records(
        connection: &mut Self::Connection,
        names: &Names,
        parts: &[u16],
        offset: i64,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<Fetched>, sqlx::Error>> + Send;

    /// Scheduled deliveries whose time has come, the most overdue first. Those in memory are found
    /// again and again until they are written, so nothing is read of them but their names.
    #[doc(hidden)]
    fn due_deliveries(
        connection: &mut Self::Connection,
        names: &Names,
        parts: &[u16],
        handlers: &[&str],
        offset: i64,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<DueDelivery>, sqlx::Error>> + Send;

    /// Those of these deliveries that are still scheduled, the most overdue first.
    #[doc(hidden)]
    fn deliveries(
        connection: &mut Self::Connection,
        names: &Names,
        ids: &[i64],
    ) -> impl Future<Output = Result<Vec<FetchedDelivery>, sqlx::Error>> + Send;

    /// Microseconds until the next scheduled record or delivery is due (negative: overdue).
    /// `None` if there is none.
    #[doc(hidden)]
    fn next_due(
        connection: &mut Self::Connection,
        names: &Names,
        parts: &[u16],
        handlers: &[&str],
        offset: i64,
    ) -> impl Future<Output = Result<Option<i64>, sqlx::Error>> + Send;

    /// Those of these lanes in which something blocks.
    #[doc(hidden)]
    fn blocked(
        connection: &mut Self::Connection,
        names: &Names,
        lanes: &[LaneName],
    ) -> impl Future<Output = Result<Vec<LaneName>, sqlx::Error>> + Send;

    /// Those of these partitions in which something blocks.
    #[doc(hidden)]
    fn blocked_parts(
        connection: &mut Self::Connection,
        names: &Names,
        parts: &[u16],
    ) -> impl Future<Output = Result<Vec<u16>, sqlx::Error>> + Send;

    /// The first `per_lane` blocking deliveries of each of these lanes, in the lane's order.
    #[doc(hidden)]
    fn lanes(
        connection: &mut Self::Connection,
        names: &Names,
        lanes: &[LaneName],
        per_lane: i64,
    ) -> impl Future<Output = Result<Vec<FetchedDelivery>, sqlx::Error>> + Send;

    /// Lanes whose first blocking delivery is `waiting`: nothing stands before it, so it can run.
    #[doc(hidden)]
    fn runnable(
        connection: &mut Self::Connection,
        names: &Names,
        parts: &[u16],
        handlers: &[&str],
        expected: Expected,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<LaneName>, sqlx::Error>> + Send;

    /// Which other transactions are writing records now.
    #[doc(hidden)]
    fn writers(
        connection: &mut Self::Connection,
        names: &Names,
    ) -> impl Future<Output = Result<Writers, sqlx::Error>> + Send;

    /// The names of the events that were put aside because nothing handled them.
    #[doc(hidden)]
    fn unhandled(
        connection: &mut Self::Connection,
        names: &Names,
        parts: &[u16],
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;

    /// The handlers that were paused.
    #[doc(hidden)]
    fn paused(
        connection: &mut Self::Connection,
        names: &Names,
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;
}
