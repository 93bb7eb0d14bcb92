//! PostgreSQL.

mod delivery;
mod dialect;
mod fetch;
mod lease;
mod publish;
mod schema;
mod settle;
mod transaction;
mod watch;

use jiff::Timestamp;
use sqlx::{
    Decode, Postgres, Row as _, Type,
    error::BoxDynError,
    postgres::{PgRow, PgTypeInfo, PgValueRef},
};

use super::{
    Database, Driver, TableNames,
    columns::{Cells, cells},
    statements::{SqlFileError, StatementSql, statements},
};

impl Database for Postgres {}

impl Driver for Postgres {}

/// The mark around names.
const QUOTE: char = '"';

statements! {
    /// The statements of publishing and of the dispatcher.
    pub PostgresStatements,
    concat!(
        include_str!("sql/fragments.sql"),
        include_str!("sql/publish.sql"),
        include_str!("sql/lease.sql"),
        include_str!("sql/watch.sql"),
        include_str!("sql/fetch.sql"),
        include_str!("sql/delivery.sql"),
        include_str!("sql/settle.sql"),
    );
    // publish
    insert, insert_deduplicated, insert_all,
    // lease
    seed_partitions, heartbeat, renew, delete_instance, free_leases, cluster_view, take_partitions,
    release_leases, lock_leases, reap_expired,
    // watch
    channel, record_table, register, advertise, poll, reap_lost, set_listening, notify_peers,
    // fetch
    pending_records, due_records, next_due, open_writers, unhandled_events,
    // delivery
    due_deliveries, load_deliveries, blocked_among, blocking_keys, lane_heads,
    runnable_oldest_first, runnable_every_lane,
    // settle
    relax_transaction, complete_records, delete_records, complete_records_alone,
    delete_records_alone, put_aside, split_records, change_deliveries, add_failures,
    forget_failures, lock_split_records, complete_split_records, delete_split_records,
    rename_handler, requeue_unhandled,
}

impl StatementSql for Postgres {
    type Statements = PostgresStatements;

    fn statements(names: &TableNames) -> Result<PostgresStatements, SqlFileError> {
        PostgresStatements::render(names, QUOTE)
    }
}

/// The types of the columns are ours, and not compared for each row. A value that is none of its
/// type is an error all the same.
impl Cells for PgRow {
    cells!(try_get_unchecked);

    fn key(&self, at: usize) -> Result<String, sqlx::Error> {
        self.text(at)
    }

    fn optional_time(&self, at: usize) -> Result<Option<Timestamp>, sqlx::Error> {
        let moment: Option<Moment> = self.try_get_unchecked(at)?;
        Ok(moment.map(|moment| moment.0))
    }
}

/// A `timestamptz` as the protocol has it: microseconds since the year 2000.
struct Moment(Timestamp);

impl Type<Postgres> for Moment {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("timestamptz")
    }
}

impl<'r> Decode<'r, Postgres> for Moment {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        const YEAR_2000: i64 = 946_684_800_000_000;
        let micros = <i64 as Decode<Postgres>>::decode(value)?;
        let since_1970 = micros.saturating_add(YEAR_2000);
        // `infinity` is beyond what a timestamp can be.
        Ok(Self(
            Timestamp::from_microsecond(since_1970).unwrap_or(Timestamp::MAX),
        ))
    }
}

/// Partitions as this database stores them.
fn signed(parts: &[u16]) -> Vec<i16> {
    parts.iter().map(|part| part.cast_signed()).collect()
}
