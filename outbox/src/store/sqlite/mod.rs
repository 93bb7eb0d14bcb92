//! SQLite. Times are whole microseconds since 1970.

mod dialect;
mod driver;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod transaction;
mod watch;

use jiff::Timestamp;
use sqlx::{Row as _, sqlite::SqliteRow};

use super::columns::{Cells, cells, moment};

/// The database's present.
const NOW: &str = "cast(unixepoch('subsec') * 1000000 as integer)";

impl Cells for SqliteRow {
    cells!(try_get);

    fn key(&self, at: usize) -> Result<String, sqlx::Error> {
        self.text(at)
    }

    fn optional_time(&self, at: usize) -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(self.optional_number(at)?.map(moment))
    }
}
