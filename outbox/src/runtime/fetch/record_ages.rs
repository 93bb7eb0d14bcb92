//! [`RecordAges`]: from which id to read again if the database does not name its writers.

use std::{collections::VecDeque, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::store::FetchedRecord;

/// Records of a transaction that ends within 10 s after it published keep their order in their
/// keys.
const ORDER_WINDOW: SignedDuration = SignedDuration::from_secs(10);
/// Records of a transaction that ends within 10 minutes are found within about a second. The sweep
/// finds those of slower transactions.
const FIND_WINDOW: SignedDuration = SignedDuration::from_secs(600);
/// How often the whole [`FIND_WINDOW`] is read again.
const FIND_EVERY: Duration = Duration::from_secs(1);
/// Records that were published within one second share a step.
const STEP: SignedDuration = SignedDuration::from_secs(1);

/// The ages of records by id, on the database's clock. A transaction that commits a lower id later
/// has been open for longer than that.
#[derive(Debug, Default)]
pub(super) struct RecordAges {
    /// Time and id: all ids up to this one were published before this time. Both grow.
    steps: VecDeque<(Timestamp, i64)>,
    /// When the whole [`FIND_WINDOW`] was read last.
    full_read_at: Option<Instant>,
}

impl RecordAges {
    /// The id above which to read again.
    pub(super) fn reread_above(&mut self, database_time: Timestamp, now: Instant) -> i64 {
        let last = self.full_read_at;
        let is_full = last.is_none_or(|last| now.duration_since(last) >= FIND_EVERY);
        if is_full {
            self.full_read_at = Some(now);
        }
        let before = |age| database_time.checked_sub(age).unwrap_or(Timestamp::MIN);
        let oldest = before(FIND_WINDOW);
        // The last step that is old enough stays.
        while self.steps.get(1).is_some_and(|step| step.0 <= oldest) {
            self.steps.pop_front();
        }
        let old = if is_full {
            oldest
        } else {
            before(ORDER_WINDOW)
        };
        let steps = self.steps.iter().take_while(|step| step.0 <= old);
        steps.last().map_or(0, |step| step.1)
    }

    /// These records were read.
    pub(super) fn on_read(&mut self, rows: &[FetchedRecord]) {
        for FetchedRecord { record, .. } in rows {
            let (at, id) = (record.created_at, record.id);
            match self.steps.back_mut() {
                Some(last) if at.duration_since(last.0) <= STEP || id <= last.1 => {
                    last.1 = id.max(last.1);
                }
                _ => self.steps.push_back((at, id)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::Partition,
        runtime::fetch::{LateWriters, PagePlan, watermarks::tests::fetched},
        store::{OpenWriters, Page},
    };

    const PAGE: Page = Page {
        partition: Partition::new(0),
        after: i64::MAX,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// The id above which partition 0 is read at this second. Then these records are read.
    fn read(late: &mut LateWriters, second: i64, rows: &[FetchedRecord]) -> i64 {
        let writers = OpenWriters::Unnamed {
            database_time: at(second),
        };
        late.observe(&[PAGE.partition], 0, writers, Instant::now());
        let from = late.lower(&[PAGE])[0].after;
        let plan = PagePlan {
            pages: vec![PAGE],
            per_page: 9,
            limit: 9,
        };
        late.pages_read(&plan, rows);
        from
    }

    #[tokio::test(start_paused = true)]
    async fn without_names_of_writers_the_age_of_records_decides() {
        let mut late = LateWriters::default();
        let of_age = |id, second| {
            let FetchedRecord {
                partition,
                mut record,
            } = fetched(PAGE.partition, id);
            record.created_at = at(second);
            FetchedRecord { partition, record }
        };
        let rows = [
            of_age(7, 980),
            of_age(5, 979),
            of_age(20, 989),
            of_age(30, 995),
        ];
        // The first fetch of each second goes back ten minutes, the others ten seconds.
        assert_eq!(read(&mut late, 1000, &rows), 0);
        assert_eq!(read(&mut late, 1000, &[]), 20);
        assert_eq!(read(&mut late, 1006, &[]), 30);
        assert_eq!(read(&mut late, 991, &[]), 7);
        tokio::time::advance(FIND_EVERY).await;
        assert_eq!(read(&mut late, 1000, &[]), 0);
        tokio::time::advance(FIND_EVERY).await;
        assert_eq!(read(&mut late, 1590, &[]), 20);
        assert!(late.expects_late());
    }
}
