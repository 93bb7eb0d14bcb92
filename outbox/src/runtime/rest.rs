//! When lanes that rest go on.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::runtime::event_loop::Run;
use crate::{
    runtime::lane::{HandlerIx, Rest},
    store::Database,
};

/// Written and read by the loop. A lane that left memory meanwhile is not woken by it. Dropped,
/// nothing is lost but time: what rests is first in its lane, and is written when that is closed.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Rests(BTreeMap<(Instant, i64, HandlerIx), Rest>);

impl Rests {
    fn add(&mut self, now: Instant, rest: Rest) {
        let name = (now + rest.delay, rest.record.id, rest.handler);
        self.0.insert(name, rest);
    }

    /// When the next one goes on.
    pub(in crate::runtime) fn next(&self) -> Option<Instant> {
        self.0.first_key_value().map(|((at, ..), _)| *at)
    }

    fn take(&mut self, now: Instant) -> Option<Rest> {
        let first = self.0.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

impl<Db: Database> Run<Db> {
    /// Lanes whose time has come go on; those that begin to rest are remembered.
    pub(in crate::runtime) fn wake_rested(&mut self, now: Instant) {
        for rest in self.engine.lanes.take_rests() {
            self.rests.add(now, rest);
        }
        while let Some(rest) = self.rests.take(now) {
            self.engine.lanes.rested(&rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::record::Record;

    fn record() -> Record {
        Record {
            id: 1,
            event_id: uuid::Uuid::nil(),
            event: String::new(),
            version: 1,
            key: String::new(),
            payload: String::new(),
            headers: BTreeMap::new(),
            created_at: jiff::Timestamp::UNIX_EPOCH,
            max_retries: None,
        }
    }

    #[test]
    fn each_goes_on_when_its_time_has_come_the_earliest_first() {
        let (now, ms) = (Instant::now(), Duration::from_millis);
        let record = Arc::new(record());
        let mut rests = Rests::default();
        assert_eq!(rests.next(), None);
        for (handler, delay) in [(0, 30), (1, 10), (2, 20)] {
            rests.add(now, Rest::of(&record, handler, ms(delay)));
        }
        assert_eq!(rests.next(), Some(now + ms(10)));
        assert!(rests.take(now + ms(9)).is_none());
        let mut due = || rests.take(now + ms(20)).map(|rest| rest.handler);
        assert_eq!([due(), due(), due()], [Some(1), Some(2), None]);
        assert_eq!(rests.next(), Some(now + ms(30)));
    }
}
