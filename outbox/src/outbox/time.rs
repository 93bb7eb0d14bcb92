//! [`DatabaseTime`]: the time of the database, as far as the test kit changes it.

use std::sync::atomic::{AtomicI64, Ordering};

#[cfg(feature = "testing")]
use crate::outbox::clock::{Clock as _, ManualClock, later};
#[cfg(feature = "testing")]
use crate::store::NewRecord;
use crate::{
    outbox::Shared,
    store::{Database, Due},
};

/// How the time of an outbox differs from the clock of its database. Without the test kit it does
/// not: the offset is zero, and there is no manual clock.
#[derive(Debug, Default)]
pub(super) struct DatabaseTime {
    /// Microseconds that are added to the clock of the database. The kit writes it.
    offset: AtomicI64,
    /// The clock of the test kit.
    #[cfg(feature = "testing")]
    pub(super) manual: Option<ManualClock>,
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
            return Due::At(later(clock.now(), delay));
        }
        due.shifted(self.offset())
    }

    /// Sets the creation time of records that were just inserted to the time of the test kit.
    #[cfg(feature = "testing")]
    pub(super) async fn stamp(
        &self,
        connection: &mut Db::Connection,
        records: &[NewRecord],
    ) -> Result<(), sqlx::Error> {
        let Some(clock) = &self.time.manual else {
            return Ok(());
        };
        for new in records {
            let (id, at) = (new.record.event_id, clock.now().as_microsecond());
            Db::stamp(connection, &self.names, id, at).await?;
        }
        Ok(())
    }

    /// Sets nothing: only the test kit has a time of its own.
    #[cfg(not(feature = "testing"))]
    #[expect(clippy::unused_async, reason = "the test kit's version waits")]
    pub(super) async fn stamp(
        &self,
        _: &mut Db::Connection,
        _: &[crate::store::NewRecord],
    ) -> Result<(), sqlx::Error> {
        Ok(())
    }
}
