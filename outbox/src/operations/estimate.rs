//! Counting without reading what is finished.

use super::{Counts, Operations, RecordStatus, Status};
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    store::{Database, Table},
};

/// How much there is, without having read it all; see [`Operations::estimated_counts`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EstimatedCounts {
    /// What is not finished is exact; `completed` and `discarded` are estimates unless
    /// [`exact`](Self::exact).
    pub counts: Counts,
    /// Whether everything was counted: there is so little that it makes no difference.
    pub exact: bool,
    /// The id of the newest record; zero if there is none. Its growth is how much is published.
    pub newest_record_id: i64,
}

impl<Db: Database> Operations<'_, Db> {
    /// How much there is. What is not finished is counted from small indexes; how much is kept of
    /// what is finished is estimated from samples, however much there is. Cheap enough to be asked
    /// for every few seconds.
    ///
    /// ```
    /// # async fn print(outbox: &outbox::Outbox<sqlx::Sqlite>) -> outbox::Result<()> {
    /// let now = outbox.operations().estimated_counts().await?;
    /// let about = if now.exact { "" } else { "about " };
    /// println!("{} failed, {about}{} completed", now.counts.failed, now.counts.completed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the database fails.
    pub async fn estimated_counts(&self) -> Result<EstimatedCounts> {
        let operation = Operation::Count;
        let mut connection = self.connection(operation).await?;
        let counted = Db::open_counts(&mut connection, self.names())
            .await
            .during(operation)?;
        let mut counts = Counts::default();
        for one in counted {
            counts.add(&one);
        }

        let operation = Operation::Count;
        let ids = Db::ids(&mut connection, self.names(), Table::Record).await;
        let ids = ids.during(operation)?;
        let Some((lowest, newest)) = ids else {
            return Ok(EstimatedCounts {
                counts,
                exact: true,
                newest_record_id: 0,
            });
        };
        let samples = Samples::many(lowest, newest);
        let within = Db::statuses_within(
            &mut connection,
            self.names(),
            Table::Record,
            &samples.ranges,
        );
        for mut one in within.await.during(operation)? {
            // What is not finished was counted.
            if let Status::Record(RecordStatus::Completed | RecordStatus::Discarded) = one.status {
                one.count = samples.scaled(one.count);
                counts.add(&one);
            }
        }
        Ok(EstimatedCounts {
            counts,
            exact: samples.exact(),
            newest_record_id: newest,
        })
    }
}

/// Ranges of ids, evenly spread.
#[derive(Debug)]
pub(super) struct Samples {
    /// First and last of each.
    pub(super) ranges: Vec<(i64, i64)>,
    /// How many ids are in them, and how many there are.
    inside: u128,
    all: u128,
}

impl Samples {
    /// For a person who asks.
    fn many(lowest: i64, newest: i64) -> Self {
        Self::of(lowest, newest, 64 * 128, 128)
    }

    /// For a gauge that is looked at all the time.
    pub(super) fn few(lowest: i64, newest: i64) -> Self {
        Self::of(lowest, newest, 1_024, 8)
    }

    /// 64 ranges of so many ids from `lowest` to `newest`: all of them if they are few. More ranges
    /// say more than wider ones: what has a status stands together.
    fn of(lowest: i64, newest: i64, few: i64, width: i64) -> Self {
        let count = 64;
        let all = newest.saturating_sub(lowest).saturating_add(1).max(1);
        if all <= few {
            return Self {
                ranges: vec![(lowest, newest)],
                inside: 1,
                all: 1,
            };
        }
        // The ends are among them: that is where things happen.
        let step = (all - width) / (count - 1);
        let range = |n| match n {
            last if last == count - 1 => (newest - width + 1, newest),
            n => (lowest + n * step, lowest + n * step + width - 1),
        };
        Self {
            ranges: (0..count).map(range).collect(),
            inside: (count * width).unsigned_abs().into(),
            all: all.unsigned_abs().into(),
        }
    }

    fn exact(&self) -> bool {
        self.inside == self.all
    }

    pub(super) fn scaled(&self, count: u64) -> u64 {
        let scaled = u128::from(count) * self.all / self.inside;
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_all_looked_at() {
        for (lowest, newest) in [(1, 1), (7, 8198), (-5, 5)] {
            let samples = Samples::many(lowest, newest);
            assert_eq!(samples.ranges, [(lowest, newest)]);
            assert!(samples.exact());
            assert_eq!(samples.scaled(17), 17);
        }
    }

    #[test]
    fn many_are_sampled_from_end_to_end_without_overlap() {
        for (lowest, newest) in [(1, 8193), (100, 1_000_099), (1, i64::MAX), (0, 20_000)] {
            let samples = Samples::many(lowest, newest);
            assert!(!samples.exact());
            assert_eq!(samples.ranges.len(), 64);
            assert_eq!(samples.ranges.first().map(|range| range.0), Some(lowest));
            assert_eq!(samples.ranges.last().map(|range| range.1), Some(newest));
            assert!(samples.ranges.iter().all(|(a, b)| b - a == 127));
            assert!(samples.ranges.windows(2).all(|two| two[0].1 < two[1].0));
        }
    }

    #[test]
    fn a_gauge_looks_at_less() {
        assert!(Samples::few(1, 1_024).exact());
        let samples = Samples::few(1, 1_025);
        assert_eq!(samples.ranges.len(), 64);
        assert!(samples.ranges.iter().all(|(a, b)| b - a == 7));
        assert!(samples.ranges.windows(2).all(|two| two[0].1 < two[1].0));
        assert_eq!(Samples::few(1, 1_000_000).scaled(64 * 8), 1_000_000);
    }

    #[test]
    fn a_count_in_the_samples_stands_for_as_many_more_as_there_are() {
        let samples = Samples::many(1, 1_000_000);
        assert_eq!(samples.scaled(64 * 128), 1_000_000);
        assert_eq!(samples.scaled(64 * 64), 500_000);
        assert_eq!(
            Samples::many(1, i64::MAX).scaled(8192),
            i64::MAX.unsigned_abs()
        );
    }
}
