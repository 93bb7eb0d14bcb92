//! What can be said at a glance, however large the tables are.

use super::{Counted, Names, report::Columns};
use crate::operations::Instance;

/// The statements of gauges. None of them reads more than what is unfinished and a few samples.
pub trait GaugeSql: sqlx::Database {
    /// How many unfinished records (`split` ones are their deliveries) and deliveries of each
    /// status.
    #[doc(hidden)]
    fn open_counts(
        connection: &mut Self::Connection,
        names: &Names,
    ) -> impl Future<Output = Result<Vec<Counted>, sqlx::Error>> + Send;

    /// The lowest and the highest id of a record.
    #[doc(hidden)]
    fn ids(
        connection: &mut Self::Connection,
        names: &Names,
    ) -> impl Future<Output = Result<Option<(i64, i64)>, sqlx::Error>> + Send;

    /// How many of the records with ids in these ranges are finished, by their status.
    #[doc(hidden)]
    fn finished_within(
        connection: &mut Self::Connection,
        names: &Names,
        ranges: &[(i64, i64)],
    ) -> impl Future<Output = Result<Vec<Counted>, sqlx::Error>> + Send;

    /// The instances that there are, the oldest first.
    #[doc(hidden)]
    fn instances(
        connection: &mut Self::Connection,
        names: &Names,
    ) -> impl Future<Output = Result<Vec<Instance>, sqlx::Error>> + Send;

    /// The newest migration that was noted down.
    #[doc(hidden)]
    fn schema_version(
        connection: &mut Self::Connection,
        names: &Names,
    ) -> impl Future<Output = Result<Option<i64>, sqlx::Error>> + Send;
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
        of(true, delivery, "scheduled"),
        of(true, delivery, "failed"),
    ]
    .join("\nunion all ")
}

/// One range scan of the primary key for each. The same in every database.
pub(super) fn finished_within(record: &str, ranges: &[(i64, i64)]) -> String {
    let of = |(first, last): &(i64, i64)| {
        format!("select status from {record} where id between {first} and {last}")
    };
    let parts: Vec<String> = ranges.iter().map(of).collect();
    format!(
        "select false, s.status, null, count(*) from (\n{}\n) s where s.status in ('completed', 'discarded') group by s.status",
        parts.join("\nunion all ")
    )
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
