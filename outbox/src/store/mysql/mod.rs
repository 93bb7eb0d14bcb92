//! MySQL 8.0 and MariaDB 10.6. Times are in UTC and do not depend on the session's time zone.

mod dialect;
mod driver;
mod pending;
mod transaction;
mod watch;

use sqlx::{Row as _, mysql::MySqlRow};

use super::columns::{Cells, cells};

impl Cells for MySqlRow {
    cells!(try_get);

    /// Keys are stored as bytes.
    fn key(&self, at: usize) -> Result<String, sqlx::Error> {
        let key = String::from_utf8(self.try_get(at)?);
        key.map_err(|error| sqlx::Error::Decode(error.into()))
    }
}

/// `count` parameters for `in (..)`. If `count` is 0, a `null`, which is equal to no value.
fn placeholders(count: usize) -> String {
    match count {
        0 => "null".to_owned(),
        _ => vec!["?"; count].join(", "),
    }
}
