//! [`DatabaseTime`]: the difference between the time of an outbox and the clock of its database.

use std::sync::atomic::{AtomicI64, Ordering};

use super::Shared;
#[cfg(feature = "testing")]
use super::{DbContext as _, Operation, Result, clock, clock::Clock as _};
use crate::store::{Database, Due};

/// How the time of an outbox differs from the clock of its database. Without the test kit it does
/// not: the offset is zero, and there is no manual clock.
#[derive(Debug, Default)]
pub(super) struct DatabaseTime {
    /// Microseconds that are added to the clock of the database. The kit writes it.
    offset: AtomicI64,
    /// The clock of the test kit.
    #[cfg(feature = "testing")]
    pub(super) manual: Option<clock::ManualClock>,
}

impl<Db: Database> Shared<Db> {
    /// Microseconds that are added to the clock of the database; zero outside of tests.
    pub(crate) fn offset(&self) -> i64 {
        self.time.offset.load(Ordering::Acquire)
    }

    #[cfg(feature = "testing")]
    pub(crate) fn set_offset(&self, micros: i64) {
        self.time.offset.store(micros, Ordering::Release);
    }

    /// The due time in terms of the clock of the database.
    pub(super) fn due(&self, due: Due) -> Due {
        #[cfg(feature = "testing")]
        if let (Some(clock), Due::In(delay)) = (&self.time.manual, due) {
            return Due::At(clock::later(clock.now(), delay));
        }
        due.shifted(self.offset())
    }

    /// Sets the creation time of records that were just inserted to the time of the test kit.
    #[cfg(feature = "testing")]
    pub(super) async fn stamp(
        &self,
        connection: &mut Db::Connection,
        records: &[crate::store::NewRecord],
    ) -> Result<()> {
        let Some(clock) = &self.time.manual else {
            return Ok(());
        };
        for new in records {
            let (id, at) = (new.record.event_id, clock.now().as_microsecond());
            let stamped = Db::stamp(connection, &self.names, id, at).await;
            stamped.during(Operation::Publish)?;
        }
        Ok(())
    }
}
