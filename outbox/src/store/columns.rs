//! Decodes rows. Columns are looked up by name once per result; each row is then read by index.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::{Column as _, Row};
use uuid::Uuid;

use super::{
    ClusterViewRow, DueDeliveryName, FetchedDelivery, FetchedRecord, LaneName, LostSession,
    PollResult, publish::retries_from,
};
use crate::record::{Attempt, Partition, Record};

/// The cells of a row, by their index. Databases differ in how they store a key and a time.
pub trait Cells: Row {
    fn partition(&self, at: usize) -> Result<Partition, sqlx::Error>;
    fn number(&self, at: usize) -> Result<i64, sqlx::Error>;
    fn optional_number(&self, at: usize) -> Result<Option<i64>, sqlx::Error>;
    fn text(&self, at: usize) -> Result<String, sqlx::Error>;
    fn optional_text(&self, at: usize) -> Result<Option<&str>, sqlx::Error>;
    fn flag(&self, at: usize) -> Result<bool, sqlx::Error>;
    fn uuid(&self, at: usize) -> Result<Uuid, sqlx::Error>;
    fn optional_uuid(&self, at: usize) -> Result<Option<Uuid>, sqlx::Error>;

    fn key(&self, at: usize) -> Result<String, sqlx::Error> {
        self.text(at)
    }

    /// A time as the database stores it.
    fn optional_time(&self, at: usize) -> Result<Option<Timestamp>, sqlx::Error> {
        self.optional_time_from_micros(at)
    }

    /// A number between 0 and `u32::MAX`. A number outside of it, written by hand, becomes
    /// `u32::MAX`.
    fn count(&self, at: usize) -> Result<u32, sqlx::Error> {
        Ok(u32::try_from(self.number(at)?).unwrap_or(u32::MAX))
    }

    /// A number of rows.
    fn total(&self, at: usize) -> Result<u64, sqlx::Error> {
        Ok(u64::try_from(self.number(at)?).unwrap_or(0))
    }

    fn optional_string(&self, at: usize) -> Result<Option<String>, sqlx::Error> {
        Ok(self.optional_text(at)?.map(str::to_owned))
    }

    /// A time. A null, written by hand, becomes the latest time.
    fn time(&self, at: usize) -> Result<Timestamp, sqlx::Error> {
        Ok(self.optional_time(at)?.unwrap_or(Timestamp::MAX))
    }

    /// A time as microseconds since 1970.
    fn time_from_micros(&self, at: usize) -> Result<Timestamp, sqlx::Error> {
        Ok(time_from_micros(self.number(at)?))
    }

    fn optional_time_from_micros(&self, at: usize) -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(self.optional_number(at)?.map(time_from_micros))
    }
}

/// Implements the cells that all drivers read in the same way, with this method of [`Row`].
macro_rules! cells {
    ($get:ident) => {
        fn partition(&self, at: usize) -> Result<crate::record::Partition, sqlx::Error> {
            let number = self.$get::<i16, _>(at)?;
            Ok(crate::record::Partition::new(number.cast_unsigned()))
        }

        fn number(&self, at: usize) -> Result<i64, sqlx::Error> {
            self.$get(at)
        }

        fn optional_number(&self, at: usize) -> Result<Option<i64>, sqlx::Error> {
            self.$get(at)
        }

        fn text(&self, at: usize) -> Result<String, sqlx::Error> {
            self.$get(at)
        }

        fn optional_text(&self, at: usize) -> Result<Option<&str>, sqlx::Error> {
            self.$get(at)
        }

        fn flag(&self, at: usize) -> Result<bool, sqlx::Error> {
            self.$get(at)
        }

        fn uuid(&self, at: usize) -> Result<uuid::Uuid, sqlx::Error> {
            self.$get(at)
        }

        fn optional_uuid(&self, at: usize) -> Result<Option<uuid::Uuid>, sqlx::Error> {
            self.$get(at)
        }
    };
}
pub(super) use cells;

/// A time that was written by hand and does not fit into a timestamp becomes the nearest time that
/// fits.
fn time_from_micros(micros: i64) -> Timestamp {
    let end = if micros < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::from_microsecond(micros).unwrap_or(end)
}

/// Decodes the stored headers. Text that was written by hand and is not JSON yields no headers.
fn headers(json: &str) -> BTreeMap<String, String> {
    serde_json::from_str(json).unwrap_or_default()
}

/// The indexes of the columns in the rows of one result.
pub(super) trait Columns: Sized {
    fn locate<R: Row>(row: &R) -> Result<Self, sqlx::Error>;
}

/// A result of one column.
impl Columns for () {
    fn locate<R: Row>(_: &R) -> Result<Self, sqlx::Error> {
        Ok(())
    }
}

impl<A: Columns, B: Columns> Columns for (A, B) {
    fn locate<R: Row>(row: &R) -> Result<Self, sqlx::Error> {
        Ok((A::locate(row)?, B::locate(row)?))
    }
}

fn column_index<R: Row>(row: &R, name: &str) -> Result<usize, sqlx::Error> {
    let index = row
        .columns()
        .iter()
        .position(|column| column.name() == name);
    index.ok_or_else(|| sqlx::Error::ColumnNotFound(name.to_owned()))
}

/// Declares a struct of column indexes. Each field has the name of its column.
macro_rules! columns {
    ($($(#[$doc:meta])* $Name:ident { $($column:ident),* $(,)? })*) => {$(
        $(#[$doc])*
        pub(super) struct $Name { $($column: usize,)* }

        impl Columns for $Name {
            fn locate<R: Row>(row: &R) -> Result<Self, sqlx::Error> {
                Ok(Self { $($column: column_index(row, stringify!($column))?,)* })
            }
        }
    )*};
}

columns! {
    /// A record as the dispatcher reads it.
    RecordColumns {
        part, id, event_id, event, version, key, payload, headers, created_at, max_retries,
    }
    /// A delivery. The same row has the columns of its record.
    DeliveryColumns {
        handler, is_waiting, blocking, attempt, failure_count, first_failed_at, has_followers,
    }
    DueDeliveryColumns { id, record_id, handler }
    LaneColumns { part, key, handler }
    KeyColumns { part, key }
    ClusterColumns { part, epoch, instance, micros_left, handler }
    PollColumns {
        highest_id, has_open_writers, ownership_digest, peers, lost_sessions, has_session_lock,
        is_advertised,
    }
}

/// A type that a row decodes to.
pub(super) trait FromCells: Sized {
    type Columns: Columns;

    fn read<R: Cells>(row: &R, at: &Self::Columns) -> Result<Self, sqlx::Error>;
}

/// Reads all rows of one result.
pub(super) fn read_all<T: FromCells, R: Cells>(rows: &[R]) -> Result<Vec<T>, sqlx::Error> {
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let at = T::Columns::locate(first)?;
    rows.iter().map(|row| T::read(row, &at)).collect()
}

/// Reads one row.
pub(super) fn read_one<T: FromCells, R: Cells>(row: &R) -> Result<T, sqlx::Error> {
    T::read(row, &T::Columns::locate(row)?)
}

/// Decodes rows of one column, with this method of [`Cells`].
macro_rules! from_cell {
    ($($Type:ty: $read:ident,)*) => {$(
        impl FromCells for $Type {
            type Columns = ();

            fn read<R: Cells>(row: &R, (): &()) -> Result<Self, sqlx::Error> {
                row.$read(0)
            }
        }
    )*};
}
from_cell! {
    i64: number,
    Option<i64>: optional_number,
    Partition: partition,
    String: text,
}

impl FromCells for FetchedRecord {
    type Columns = RecordColumns;

    fn read<R: Cells>(row: &R, at: &RecordColumns) -> Result<Self, sqlx::Error> {
        let json = row.optional_text(at.headers)?;
        let (max_retries, pinned_max_retries) = retries_from(row.optional_number(at.max_retries)?);
        let record = Record {
            id: row.number(at.id)?,
            event_id: row.uuid(at.event_id)?,
            event: row.text(at.event)?,
            version: row.count(at.version)?,
            key: row.key(at.key)?,
            payload: row.text(at.payload)?,
            headers: json.map_or_else(BTreeMap::new, headers),
            created_at: row.time(at.created_at)?,
            max_retries,
            pinned_max_retries,
        };
        Ok(Self {
            partition: row.partition(at.part)?,
            record,
        })
    }
}

impl FromCells for FetchedDelivery {
    type Columns = (RecordColumns, DeliveryColumns);

    fn read<R: Cells>(row: &R, (record, at): &Self::Columns) -> Result<Self, sqlx::Error> {
        Ok(Self {
            handler: row.text(at.handler)?,
            is_waiting: row.flag(at.is_waiting)?,
            blocking: row.flag(at.blocking)?,
            has_followers: row.flag(at.has_followers)?,
            attempt: Attempt {
                number: row.count(at.attempt)?,
                failure_count: row.count(at.failure_count)?,
                first_failed_at: row.optional_time(at.first_failed_at)?,
            },
            record: FetchedRecord::read(row, record)?,
        })
    }
}

impl FromCells for DueDeliveryName {
    type Columns = DueDeliveryColumns;

    fn read<R: Cells>(row: &R, at: &DueDeliveryColumns) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.number(at.id)?,
            record_id: row.number(at.record_id)?,
            handler: row.text(at.handler)?,
        })
    }
}

impl FromCells for LaneName {
    type Columns = LaneColumns;

    fn read<R: Cells>(row: &R, at: &LaneColumns) -> Result<Self, sqlx::Error> {
        Ok(Self {
            partition: row.partition(at.part)?,
            key: row.key(at.key)?,
            handler: row.text(at.handler)?,
        })
    }
}

/// A partition and a key in it.
impl FromCells for (Partition, String) {
    type Columns = KeyColumns;

    fn read<R: Cells>(row: &R, at: &KeyColumns) -> Result<Self, sqlx::Error> {
        Ok((row.partition(at.part)?, row.key(at.key)?))
    }
}

impl FromCells for ClusterViewRow {
    type Columns = ClusterColumns;

    fn read<R: Cells>(row: &R, at: &ClusterColumns) -> Result<Self, sqlx::Error> {
        let epoch = row.optional_number(at.epoch)?;
        let micros_left = row.optional_number(at.micros_left)?;
        let instance = row.optional_uuid(at.instance)?;
        Ok(match (epoch, instance, micros_left) {
            (Some(epoch), owner, micros_left) => Self::Lease(super::LeaseRow {
                partition: row.partition(at.part)?,
                epoch,
                owner,
                is_expired: micros_left.is_none_or(|micros| micros <= 0),
            }),
            (None, Some(id), Some(expires_in)) => {
                Self::Instance(super::InstanceRow { id, expires_in })
            }
            _ => Self::Paused(row.text(at.handler)?),
        })
    }
}

impl FromCells for PollResult {
    type Columns = PollColumns;

    fn read<R: Cells>(row: &R, at: &PollColumns) -> Result<Self, sqlx::Error> {
        // `session/instance`, with commas between.
        let lost_text = row.optional_text(at.lost_sessions)?.unwrap_or_default();
        let lost_sessions = lost_text.split(',').filter_map(|lost| {
            let (session, id) = lost.split_once('/')?;
            Some(LostSession {
                id: Uuid::parse_str(id).ok()?,
                session: session.to_owned(),
            })
        });
        Ok(Self {
            highest_id: row.number(at.highest_id)?,
            has_open_writers: row.flag(at.has_open_writers)?,
            ownership_digest: row
                .optional_string(at.ownership_digest)?
                .unwrap_or_default(),
            peers: row.count(at.peers)?,
            lost_sessions: lost_sessions.collect(),
            has_session_lock: row.flag(at.has_session_lock)?,
            is_advertised: row.flag(at.is_advertised)?,
        })
    }
}
