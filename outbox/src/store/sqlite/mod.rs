//! SQLite. Times are whole microseconds since 1970.

mod delivery;
mod dialect;
mod fetch;
mod lease;
mod publish;
mod schema;
mod settle;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod transaction;
mod watch;

use jiff::Timestamp;
use sqlx::{Row as _, Sqlite, sqlite::SqliteRow};

use super::{
    Database, Driver, TableNames,
    columns::{Cells, cells, moment},
    statements::{SqlFileError, StatementSql, statements},
};

/// The database's present.
const NOW: &str = "cast(unixepoch('subsec') * 1000000 as integer)";

impl Database for Sqlite {}

impl Driver for Sqlite {}

/// The mark around names.
const QUOTE: char = '"';

statements! {
    /// The statements of publishing and of the dispatcher.
    pub SqliteStatements,
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
    seed_partitions, add_instance, renew, delete_instance, delete_expired_instance, free_leases,
    cluster_view, take_partitions, release_leases, lock_leases,
    // watch
    poll,
    // fetch
    pending_records, due_records, next_due, unhandled_events,
    // delivery
    due_deliveries, load_deliveries, blocked_among, blocking_keys, lane_heads,
    runnable_oldest_first, runnable_every_lane,
    // settle
    complete_records, delete_records, put_aside, split_records, add_deliveries, change_deliveries,
    add_failures, forget_failures, complete_split_records, delete_split_records,
    delete_deliveries, delete_failures, rename_handler, requeue_unhandled,
}

impl StatementSql for Sqlite {
    type Statements = SqliteStatements;

    fn statements(names: &TableNames) -> Result<SqliteStatements, SqlFileError> {
        SqliteStatements::render(names, QUOTE)
    }
}

impl Cells for SqliteRow {
    cells!(try_get);

    fn key(&self, at: usize) -> Result<String, sqlx::Error> {
        self.text(at)
    }

    fn optional_time(&self, at: usize) -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(self.optional_number(at)?.map(moment))
    }
}
