//! MySQL 8.0 and MariaDB 10.6. Times are in UTC, whatever the session's time zone is.

mod delivery;
mod dialect;
mod fetch;
mod lease;
mod publish;
mod rows;
mod schema;
mod settle;
mod transaction;
mod watch;

use sqlx::MySql;

use super::{Database, Driver};

impl Database for MySql {}

impl Driver for MySql {}

/// That many parameters, for `in (..)`. None: a `null`, which nothing is equal to.
fn places(count: usize) -> String {
    match count {
        0 => "null".to_owned(),
        _ => vec!["?"; count].join(", "),
    }
}
