//! SQLite. Times are whole microseconds since 1970.

mod dialect;
mod driver;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod transaction;
mod watch;

use sqlx::{Row as _, sqlite::SqliteRow};

use super::columns::{Cells, cells};

/// The current time on the database's clock.
const NOW: &str = "cast(unixepoch('subsec') * 1000000 as integer)";

impl Cells for SqliteRow {
    cells!(try_get);
}
