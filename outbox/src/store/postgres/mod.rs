//! PostgreSQL.

mod dialect;
mod driver;
mod transaction;
mod watch;

use jiff::Timestamp;
use sqlx::{
    Decode, Postgres, Row as _, Type,
    error::BoxDynError,
    postgres::{PgRow, PgTypeInfo, PgValueRef},
};

use super::columns::{Cells, cells};

/// The types of the columns are known, so they are not checked for each row. A value that cannot be
/// decoded is still an error.
impl Cells for PgRow {
    cells!(try_get_unchecked);

    fn optional_time(&self, at: usize) -> Result<Option<Timestamp>, sqlx::Error> {
        let time: Option<PgTimestamp> = self.try_get_unchecked(at)?;
        Ok(time.map(|time| time.0))
    }
}

/// A `timestamptz` as the protocol sends it: microseconds since the year 2000.
struct PgTimestamp(Timestamp);

impl Type<Postgres> for PgTimestamp {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("timestamptz")
    }
}

impl<'r> Decode<'r, Postgres> for PgTimestamp {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        const YEAR_2000: i64 = 946_684_800_000_000;
        let micros = <i64 as Decode<Postgres>>::decode(value)?;
        let since_1970 = micros.saturating_add(YEAR_2000);
        // `infinity` does not fit into a timestamp.
        Ok(Self(
            Timestamp::from_microsecond(since_1970).unwrap_or(Timestamp::MAX),
        ))
    }
}
