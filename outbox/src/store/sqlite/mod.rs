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

use sqlx::Sqlite;

use super::{Database, Driver};

/// The database's present.
const NOW: &str = "cast(unixepoch('subsec') * 1000000 as integer)";

impl Database for Sqlite {}

impl Driver for Sqlite {}
