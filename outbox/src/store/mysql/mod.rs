//! MySQL 8.0 and MariaDB 10.6. Times are in UTC, whatever the session's time zone is.

mod delivery;
mod dialect;
mod fetch;
mod lease;
mod publish;
mod repeated;
mod schema;
mod settle;
mod transaction;
mod watch;

use jiff::Timestamp;
use sqlx::{MySql, Row as _, mysql::MySqlRow};

use self::repeated::Repeated;
use super::{
    Database, Driver, TableNames,
    columns::{Cells, cells, moment},
    statements::{SqlFileError, StatementSql, statements},
};

impl Database for MySql {}

impl Driver for MySql {}

/// The mark around names.
const QUOTE: char = '`';

statements! {
    /// The statements of publishing and of the dispatcher.
    pub MySqlStatements,
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
    cluster_view, lock_free_leases: Repeated, take_partitions: Repeated, release_leases,
    lock_leases,
    // watch
    register, advertise, poll, delete_lost_instance,
    // fetch
    pending_page, pending_pages: Repeated, pending_ids: Repeated, records_of_ids,
    due_records: Repeated, next_due, clock, unhandled_events: Repeated,
    // delivery
    due_deliveries: Repeated, load_deliveries, blocked_among, blocking_keys: Repeated,
    lane_heads: Repeated, runnable_oldest_first: Repeated, runnable_every_lane: Repeated,
    // settle
    complete_records: Repeated, delete_records: Repeated, put_aside: Repeated,
    lock_records: Repeated, split_records, add_deliveries, change_deliveries: Repeated,
    add_failures: Repeated, forget_failures: Repeated, lock_split_records, open_deliveries,
    complete_split_records, delete_split_records, delete_deliveries, delete_failures,
    rename_handler: Repeated, requeue_unhandled: Repeated,
}

impl StatementSql for MySql {
    type Statements = MySqlStatements;

    fn statements(names: &TableNames) -> Result<MySqlStatements, SqlFileError> {
        MySqlStatements::render(names, QUOTE)
    }
}

impl Cells for MySqlRow {
    cells!(try_get);

    /// Keys are stored as bytes.
    fn key(&self, at: usize) -> Result<String, sqlx::Error> {
        let key = String::from_utf8(self.try_get(at)?);
        key.map_err(|error| sqlx::Error::Decode(error.into()))
    }

    fn optional_time(&self, at: usize) -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(self.optional_number(at)?.map(moment))
    }
}

/// That many parameters, for `in (..)`. None: a `null`, which nothing is equal to.
fn places(count: usize) -> String {
    match count {
        0 => "null".to_owned(),
        _ => vec!["?"; count].join(", "),
    }
}
