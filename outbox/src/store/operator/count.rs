//! The statements that count rows. Only [`counts`](Operator::counts) and samples without a limit read
//! finished rows too.

use jiff::Timestamp;

use super::{
    Operator,
    rows::{capped, counted, counted_of_event, error_count},
};
use crate::{
    operations::{DeliveryStatus, ErrorCount, RecordStatus, Status},
    store::{
        columns::Cells as _,
        dialect::{Dialect, Statement},
    },
};

/// One of the two tables that grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Record,
    Delivery,
}

impl Table {
    /// The name of the table, without its prefix.
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

/// The unfinished statuses. Split records are not among them, because their deliveries are counted.
pub(crate) const OPEN: [Status; 6] = [
    Status::Record(RecordStatus::Pending),
    Status::Record(RecordStatus::Scheduled),
    Status::Record(RecordStatus::Unhandled),
    Status::Delivery(DeliveryStatus::Waiting),
    Status::Delivery(DeliveryStatus::Retrying),
    FAILED,
];
const FAILED: Status = Status::Delivery(DeliveryStatus::Failed);

/// The number of rows of one status; of one event, if the query groups by events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusCount {
    pub(crate) status: Status,
    pub(crate) event: Option<String>,
    pub(crate) count: u64,
    /// When the newest of them failed, if the query groups by events and they are failed deliveries.
    pub(crate) newest_failed_at: Option<Timestamp>,
}

/// The number of rows of one status, up to a cap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CappedCount {
    pub(crate) counted: StatusCount,
    /// The number of rows that block their lane. Zero for records.
    pub(crate) blocking: u64,
}

/// Which rows of a status a sample reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleExtent {
    /// All rows, without a limit.
    Unlimited,
    /// All rows, because there are at most twice [`SAMPLE_END`].
    All,
    /// The oldest and the newest rows, [`SAMPLE_END`] of each.
    Ends,
}

/// How many rows a sample reads at each end.
pub(crate) const SAMPLE_END: u32 = 5_000;

/// A sample of the rows of one status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatusSample {
    pub(crate) status: Status,
    pub(crate) extent: SampleExtent,
}

impl<Db: Dialect> Operator<'_, Db> {
    /// The number of records and unfinished deliveries of each status.
    pub(crate) async fn counts(&mut self) -> Result<Vec<StatusCount>, sqlx::Error> {
        let record = self.table("record");
        let mut selects = vec![format!(
            "select false, status, null, count(*) from {record} group by status"
        )];
        let deliveries = OPEN
            .iter()
            .filter(|status| status.table() == Table::Delivery);
        selects.extend(deliveries.map(|status| self.open_count(*status)));
        self.rows(union(&selects), counted).await
    }

    /// The number of rows of each of these unfinished statuses.
    pub(crate) async fn open_counts(
        &mut self,
        statuses: &[Status],
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let selects: Vec<String> = statuses.iter().map(|one| self.open_count(*one)).collect();
        self.rows(union(&selects), counted).await
    }

    /// The count of one status, from the index of that status.
    fn open_count(&self, status: Status) -> String {
        let (is_delivery, rows) = (status.table().is_delivery(), self.rows_of(status));
        format!(
            "select {is_delivery}, '{status}', null, count(*) from {rows} where status = '{status}'"
        )
    }

    /// The counts of unfinished statuses, each up to `cap`. Reads a few pages of an index, however
    /// many rows there are.
    pub(crate) async fn capped_counts(
        &mut self,
        cap: u32,
    ) -> Result<Vec<CappedCount>, sqlx::Error> {
        let selects = OPEN.map(|status| self.capped_count(status, cap));
        let rows = Db::with_index_order(self.connection, union(&selects).query()?).await?;
        rows.iter().map(capped).collect()
    }

    /// The number of failed deliveries, up to `cap`.
    pub(crate) async fn capped_failures(&mut self, cap: u32) -> Result<u64, sqlx::Error> {
        let statement = Statement::new(self.capped_count(FAILED, cap));
        let rows = Db::with_index_order(self.connection, statement.query()?).await?;
        let count = rows.first().map(capped).transpose()?;
        Ok(count.map_or(0, |capped| capped.counted.count))
    }

    fn capped_count(&self, status: Status, cap: u32) -> String {
        let (is_delivery, rows) = (status.table().is_delivery(), self.rows_of(status));
        let (index, order) = Db::index_path(self.names, status);
        // `blocking` is not in the indexes. It is read only for statuses that have both values.
        let (column, blocking) = match status {
            Status::Delivery(DeliveryStatus::Retrying | DeliveryStatus::Failed) => {
                ("blocking", "count(case when c.blocking then 1 end)")
            }
            Status::Delivery(_) | Status::Record(_) => ("id", "0"),
        };
        format!(
            "select {is_delivery}, '{status}', null, count(*), {blocking} from (select {column} from {rows}{index} where status = '{status}'{order} limit {cap}) c"
        )
    }

    /// The number of rows of each event in these samples, and the newest time of a failure.
    pub(crate) async fn events_of(
        &mut self,
        samples: &[StatusSample],
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let (record, null) = (self.table("record"), Db::WORDS.null_number);
        let of = |sample: &StatusSample| {
            let status = sample.status;
            match status.table() {
                Table::Record => {
                    let rows = self.sampled(*sample, "event");
                    format!(
                        "select false, '{status}', s.event, count(*), {null} from ({rows}) s group by s.event"
                    )
                }
                Table::Delivery => {
                    let (rows, newest) = if status == FAILED {
                        let newest = Db::micros_between(Db::WORDS.epoch, "max(s.failed_at)");
                        (self.sampled(*sample, "record_id, failed_at"), newest)
                    } else {
                        (self.sampled(*sample, "record_id"), null.to_owned())
                    };
                    format!(
                        "select true, '{status}', r.event, count(*), {newest} from ({rows}) s join {record} r on r.id = s.record_id group by r.event"
                    )
                }
            }
        };
        let selects: Vec<String> = samples.iter().map(of).collect();
        let unlimited = |sample: &StatusSample| sample.extent == SampleExtent::Unlimited;
        let rows = if samples.iter().all(unlimited) {
            Db::fetch_rows(self.connection, union(&selects).query()?).await?
        } else {
            Db::with_index_order(self.connection, union(&selects).query()?).await?
        };
        rows.iter().map(counted_of_event).collect()
    }

    /// Failed deliveries by fingerprint and handler, the most frequent first.
    pub(crate) async fn errors_of(
        &mut self,
        extent: SampleExtent,
        limit: u32,
    ) -> Result<Vec<ErrorCount>, sqlx::Error> {
        let delivery = self.table("delivery");
        let sample = StatusSample {
            status: FAILED,
            extent,
        };
        let rows = self.sampled(sample, "fingerprint, handler, record_id, failed_at");
        let micros = |time| Db::micros_between(Db::WORDS.epoch, time);
        let (first, last) = (micros("g.first_failed"), micros("g.last_failed"));
        let statement = Statement::new(format!(
            "select g.fingerprint, g.handler, d.error_kind, d.error, g.count, g.oldest, g.newest, {first}, {last}
from (
    select coalesce(fingerprint, '') as fingerprint, handler, count(*) as count, min(record_id) as oldest,
        max(record_id) as newest, min(failed_at) as first_failed, max(failed_at) as last_failed
    from ({rows}) s group by 1, 2
    order by 3 desc, 1, 2 limit {limit}
) g
join {delivery} d on d.record_id = g.newest and d.handler = g.handler
order by g.count desc, g.fingerprint, g.handler"
        ));
        let rows = match extent {
            SampleExtent::Unlimited => Db::fetch_rows(self.connection, statement.query()?).await?,
            SampleExtent::All | SampleExtent::Ends => {
                Db::with_index_order(self.connection, statement.query()?).await?
            }
        };
        rows.iter().map(error_count).collect()
    }

    /// The query of a sample. It reads in the order of the status's index, from one end or from both.
    fn sampled(&self, sample: StatusSample, columns: &str) -> String {
        let (rows, status) = (self.rows_of(sample.status), sample.status);
        let (index, order) = Db::index_path(self.names, status);
        let back = format!("{} desc", order.replace(',', " desc,"));
        let first = |alias: char, order: &str, limit: u32| {
            format!(
                "select {alias}.* from (select {columns} from {rows}{index} where status = '{status}'{order} limit {limit}) {alias}"
            )
        };
        match sample.extent {
            SampleExtent::Unlimited => {
                format!("select {columns} from {rows} where status = '{status}'")
            }
            SampleExtent::All => first('a', order, SAMPLE_END * 2),
            SampleExtent::Ends => format!(
                "{} union all {}",
                first('a', order, SAMPLE_END),
                first('b', &back, SAMPLE_END)
            ),
        }
    }

    /// The lowest and the highest id.
    pub(crate) async fn id_range(
        &mut self,
        table: Table,
    ) -> Result<Option<(i64, i64)>, sqlx::Error> {
        let rows = self.table(table.name());
        // Two subqueries, because each then reads only one end of the primary key.
        let sql = format!("select (select min(id) from {rows}), (select max(id) from {rows})");
        self.two_ints(Statement::new(sql)).await
    }

    /// How many rows have an id in one of these ranges, by their status.
    pub(crate) async fn statuses_within(
        &mut self,
        table: Table,
        ranges: &[(i64, i64)],
    ) -> Result<Vec<StatusCount>, sqlx::Error> {
        let rows = Db::statuses_within(self.connection, self.names, table, ranges).await?;
        rows.iter().map(counted).collect()
    }

    /// Microseconds since the oldest pending record was published, and the lowest id of one.
    pub(crate) async fn oldest_pending(&mut self) -> Result<Option<(i64, i64)>, sqlx::Error> {
        let statement = Statement::new(Db::oldest_pending(self.names));
        self.two_ints(statement).await
    }

    async fn two_ints(
        &mut self,
        statement: Statement<Db>,
    ) -> Result<Option<(i64, i64)>, sqlx::Error> {
        let found = self.first(statement, |row| {
            Ok(row.optional_number(0)?.zip(row.optional_number(1)?))
        });
        Ok(found.await?.flatten())
    }

    /// The table that has this status.
    fn rows_of(&self, status: Status) -> String {
        self.table(status.table().name())
    }
}

fn union<Db: Dialect>(selects: &[String]) -> Statement<Db> {
    Statement::new(selects.join("\nunion all "))
}

impl Status {
    pub(crate) const fn table(self) -> Table {
        match self {
            Self::Record(_) => Table::Record,
            Self::Delivery(_) => Table::Delivery,
        }
    }
}
