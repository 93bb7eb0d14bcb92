//! [`Samples`]: ranges of ids from which the counts of a table are estimated.

/// Ranges of ids, evenly spread over a table.
#[derive(Debug)]
pub(super) struct Samples {
    /// The first and the last id of each range.
    pub(super) ranges: Vec<(i64, i64)>,
    /// The number of ids in the ranges, and in the table.
    inside: u64,
    all: u64,
}

impl Samples {
    /// For a call of an operator: 64 ranges of 128 ids.
    pub(super) fn many(lowest: i64, newest: i64) -> Self {
        Self::of(lowest, newest, 64 * 128, 128)
    }

    /// For a gauge that is read every few seconds: 64 ranges of 8 ids.
    pub(super) fn few(lowest: i64, newest: i64) -> Self {
        Self::of(lowest, newest, 1_024, 8)
    }

    /// 64 ranges of `width` ids from `lowest` to `newest`, or all ids if there are at most `few`.
    /// Many narrow ranges estimate better than a few wide ones, because neighbours often have the same
    /// status.
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
        // The ranges include the lowest and the newest ids, where most changes happen.
        let step = (all - width) / (count - 1);
        let range = |n| match n {
            last if last == count - 1 => (newest - width + 1, newest),
            n => (lowest + n * step, lowest + n * step + width - 1),
        };
        Self {
            ranges: (0..count).map(range).collect(),
            inside: (count * width).unsigned_abs(),
            all: all.unsigned_abs(),
        }
    }

    pub(super) fn is_exact(&self) -> bool {
        self.inside == self.all
    }

    /// The estimate for the table of a count in the ranges.
    pub(super) fn scaled(&self, count: u64) -> u64 {
        share(count, self.all, self.inside)
    }
}

/// `count / seen` of `all`.
pub(super) fn share(count: u64, all: u64, seen: u64) -> u64 {
    let scaled = u128::from(count) * u128::from(all) / u128::from(seen.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_table_is_read_completely() {
        for (lowest, newest) in [(1, 1), (7, 8198), (-5, 5)] {
            let samples = Samples::many(lowest, newest);
            assert_eq!(samples.ranges, [(lowest, newest)]);
            assert!(samples.is_exact());
            assert_eq!(samples.scaled(17), 17);
        }
    }

    #[test]
    fn a_large_table_is_sampled_from_end_to_end_without_overlap() {
        for (lowest, newest) in [(1, 8193), (100, 1_000_099), (1, i64::MAX), (0, 20_000)] {
            let samples = Samples::many(lowest, newest);
            assert!(!samples.is_exact());
            assert_eq!(samples.ranges.len(), 64);
            assert_eq!(samples.ranges.first().map(|range| range.0), Some(lowest));
            assert_eq!(samples.ranges.last().map(|range| range.1), Some(newest));
            assert!(samples.ranges.iter().all(|(a, b)| b - a == 127));
            assert!(samples.ranges.windows(2).all(|two| two[0].1 < two[1].0));
        }
    }

    #[test]
    fn a_gauge_reads_fewer_ids() {
        assert!(Samples::few(1, 1_024).is_exact());
        let samples = Samples::few(1, 1_025);
        assert_eq!(samples.ranges.len(), 64);
        assert!(samples.ranges.iter().all(|(a, b)| b - a == 7));
        assert!(samples.ranges.windows(2).all(|two| two[0].1 < two[1].0));
        assert_eq!(Samples::few(1, 1_000_000).scaled(64 * 8), 1_000_000);
    }

    #[test]
    fn a_count_in_the_samples_is_scaled_to_the_table() {
        let samples = Samples::many(1, 1_000_000);
        assert_eq!(samples.scaled(64 * 128), 1_000_000);
        assert_eq!(samples.scaled(64 * 64), 500_000);
        assert_eq!(
            Samples::many(1, i64::MAX).scaled(8192),
            i64::MAX.unsigned_abs()
        );
    }
}
