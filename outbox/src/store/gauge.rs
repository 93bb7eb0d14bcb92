//! What can be said at a glance, however large the tables are.

use super::{StatusCount, TableNames, report::Columns};
use crate::operations::{DeliveryStatus, ErrorCount, Instance};

/// One of the two tables that grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Record,
    Delivery,
}

impl Table {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Delivery => "delivery",
        }
    }

    pub(crate) const fn is_delivery(self) -> bool {
        matches!(self, Self::Delivery)
    }
}

/// How many there are of one status, as far as was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CappedCount {
    pub(crate) counted: StatusCount,
    /// How many of them hold their lane up; of deliveries only.
    pub(crate) blocking: u64,
}

/// The statements of gauges. None of them reads more than what is unfinished and a few samples.
pub trait GaugeSql: sqlx::Database {
    /// How many unfinished records (`split` ones are their deliveries) and deliveries of each
    /// status.
    #[doc(hidden)]
    fn open_counts(
        connection: &mut Self::Connection,
        names: &TableNames,
    ) -> impl Future<Output = Result<Vec<StatusCount>, sqlx::Error>> + Send;

    /// The same, counting no more than `cap` of each: a few pages of an index, however many there
    /// are.
    #[doc(hidden)]
    fn capped_counts(
        connection: &mut Self::Connection,
        names: &TableNames,
        cap: u32,
    ) -> impl Future<Output = Result<Vec<CappedCount>, sqlx::Error>> + Send;

    /// How many deliveries failed for good, counting no more than `cap`.
    #[doc(hidden)]
    fn capped_failures(
        connection: &mut Self::Connection,
        names: &TableNames,
        cap: u32,
    ) -> impl Future<Output = Result<Option<CappedCount>, sqlx::Error>> + Send;

    /// How many of each event, of these statuses: of all, or of the oldest and the newest [`SAMPLE_END`].
    #[doc(hidden)]
    fn events_of(
        connection: &mut Self::Connection,
        names: &TableNames,
        parts: &[StatusSample],
    ) -> impl Future<Output = Result<Vec<StatusCount>, sqlx::Error>> + Send;

    /// Failed deliveries by fingerprint and handler, the most frequent first, in the same way.
    #[doc(hidden)]
    fn errors_of(
        connection: &mut Self::Connection,
        names: &TableNames,
        extent: SampleExtent,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<ErrorCount>, sqlx::Error>> + Send;

    /// The lowest and the highest id.
    #[doc(hidden)]
    fn ids(
        connection: &mut Self::Connection,
        names: &TableNames,
        table: Table,
    ) -> impl Future<Output = Result<Option<(i64, i64)>, sqlx::Error>> + Send;

    /// How many there are with ids in these ranges, by their status.
    #[doc(hidden)]
    fn statuses_within(
        connection: &mut Self::Connection,
        names: &TableNames,
        table: Table,
        ranges: &[(i64, i64)],
    ) -> impl Future<Output = Result<Vec<StatusCount>, sqlx::Error>> + Send;

    /// The instances that there are, the oldest first.
    #[doc(hidden)]
    fn instances(
        connection: &mut Self::Connection,
        names: &TableNames,
    ) -> impl Future<Output = Result<Vec<Instance>, sqlx::Error>> + Send;

    /// The newest migration that was noted down.
    #[doc(hidden)]
    fn schema_version(
        connection: &mut Self::Connection,
        names: &TableNames,
    ) -> impl Future<Output = Result<Option<i64>, sqlx::Error>> + Send;
}

/// How much of a status is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleExtent {
    /// There are no more than twice [`SAMPLE_END`].
    All,
    /// The oldest and the newest, [`SAMPLE_END`] of each.
    Ends,
}

/// So many at each end.
pub(crate) const SAMPLE_END: u32 = 5_000;

/// One status, and how much of it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusSample {
    pub(crate) table: Table,
    /// As it is stored.
    pub(crate) status: &'static str,
    pub(crate) extent: SampleExtent,
}

/// Rows of a status, in the order of its path and from its other end. The same in every database.
fn ends(
    names: &TableNames,
    quote: char,
    path: impl Fn(Table, &str) -> IndexPath,
    part: StatusSample,
    columns: &str,
) -> String {
    let (rows, status) = (names.table(part.table.name(), quote), part.status);
    let (index, order) = path(part.table, status);
    let back = format!("{} desc", order.replace(',', " desc,"));
    let first = |alias: char, order: &str, limit: u32| {
        format!(
            "select {alias}.* from (select {columns} from {rows}{index} where status = '{status}'{order} limit {limit}) {alias}"
        )
    };
    match part.extent {
        SampleExtent::All => first('a', order, SAMPLE_END * 2),
        SampleExtent::Ends => format!(
            "{} union all {}",
            first('a', order, SAMPLE_END),
            first('b', &back, SAMPLE_END)
        ),
    }
}

/// How many of each event. The same in every database.
pub(super) fn events_of(
    names: &TableNames,
    quote: char,
    path: impl Fn(Table, &str) -> IndexPath,
    parts: &[StatusSample],
) -> String {
    let record = names.table("record", quote);
    let of = |part: &StatusSample| {
        let status = part.status;
        match part.table {
            Table::Record => {
                let rows = ends(names, quote, &path, *part, "event");
                format!(
                    "select false, '{status}', s.event, count(*) from ({rows}) s group by s.event"
                )
            }
            Table::Delivery => {
                let rows = ends(names, quote, &path, *part, "record_id");
                format!(
                    "select true, '{status}', r.event, count(*) from ({rows}) s join {record} r on r.id = s.record_id group by r.event"
                )
            }
        }
    };
    let parts: Vec<String> = parts.iter().map(of).collect();
    parts.join("\nunion all ")
}

/// Failed deliveries by fingerprint and handler. The same in every database.
pub(super) fn errors_of(
    names: &TableNames,
    quote: char,
    path: impl Fn(Table, &str) -> IndexPath,
    extent: SampleExtent,
    limit: u32,
) -> String {
    let (delivery, part) = (
        names.table("delivery", quote),
        StatusSample {
            table: Table::Delivery,
            status: "failed",
            extent,
        },
    );
    let rows = ends(names, quote, path, part, "fingerprint, handler, record_id");
    format!(
        "select g.fingerprint, g.handler, d.error_kind, d.error, g.count, g.oldest, g.newest
from (
    select coalesce(fingerprint, '') as fingerprint, handler, count(*) as count, min(record_id) as oldest,
        max(record_id) as newest
    from ({rows}) s group by 1, 2
    order by 3 desc, 1, 2 limit {limit}
) g
join {delivery} d on d.record_id = g.newest and d.handler = g.handler
order by g.count desc, g.fingerprint, g.handler"
    )
}

/// One count for each status, each from the index of its own. The same in every database.
pub(super) fn open_counts(record: &str, delivery: &str) -> String {
    let of = |is_delivery: bool, table: &str, status: &str| {
        format!(
            "select {is_delivery}, '{status}', null, count(*) from {table} where status = '{status}'"
        )
    };
    [
        of(false, record, "pending"),
        of(false, record, "scheduled"),
        of(false, record, "unhandled"),
        of(true, delivery, "waiting"),
        of(true, delivery, "retrying"),
        of(true, delivery, "failed"),
    ]
    .join("\nunion all ")
}

/// How a driver finds rows of a status without looking at any other: what stands behind the table,
/// and behind the condition.
pub(super) type IndexPath = (String, &'static str);

/// The first `cap` of each status, each found on its path. The same in every database.
pub(super) fn capped_counts(
    names: &TableNames,
    quote: char,
    path: impl Fn(Table, &str) -> IndexPath,
    cap: u32,
) -> String {
    [
        (Table::Record, "pending"),
        (Table::Record, "scheduled"),
        (Table::Record, "unhandled"),
        (Table::Delivery, DeliveryStatus::Waiting.as_str()),
        (Table::Delivery, DeliveryStatus::Retrying.as_str()),
        (Table::Delivery, DeliveryStatus::Failed.as_str()),
    ]
    .map(|(table, status)| capped_count(names, quote, &path, cap, (table, status)))
    .join("\nunion all ")
}

/// The same for one status.
pub(super) fn capped_count(
    names: &TableNames,
    quote: char,
    path: impl Fn(Table, &str) -> IndexPath,
    cap: u32,
    (table, status): (Table, &str),
) -> String {
    let (is_delivery, rows) = (table.is_delivery(), names.table(table.name(), quote));
    let (index, order) = path(table, status);
    // Whether it blocks is not in the indexes: asked for only where it may be one or the other.
    let (column, blocking) = match (table, status) {
        (Table::Delivery, "retrying" | "failed") => {
            ("blocking", "count(case when c.blocking then 1 end)")
        }
        _ => ("id", "0"),
    };
    format!(
        "select {is_delivery}, '{status}', null, count(*), {blocking} from (select {column} from {rows}{index} where status = '{status}'{order} limit {cap}) c"
    )
}

/// The columns of [`counted`](super::report::counted), then how many block.
pub(super) fn capped(row: &impl Columns) -> Result<CappedCount, sqlx::Error> {
    Ok(CappedCount {
        counted: super::report::counted(row)?,
        blocking: row.count(4)?,
    })
}

/// Columns: id, started, microseconds until it expires, partitions.
pub(super) fn instance(row: &impl Columns) -> Result<Instance, sqlx::Error> {
    let left = u64::try_from(row.int(2)?).ok().filter(|left| *left > 0);
    Ok(Instance {
        id: row.uuid(0)?,
        started_at: row.moment(1)?,
        expires_in: left.map(std::time::Duration::from_micros),
        partitions: row.count(3)?,
    })
}
