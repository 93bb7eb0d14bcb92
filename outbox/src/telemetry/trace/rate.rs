//! [`Rate`]: limits how many log lines of one kind are at level `INFO`.

use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

/// Up to ten lines per second are low.
const LOW_LINES_PER_SECOND: u32 = 10;

/// Counts the lines of the current second. Any thread may use it; it has no lock.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// Upper 32 bits: the second. Lower 32 bits: the number of lines in that second.
    lines: AtomicU64,
}

impl Rate {
    /// Counts a line. Returns whether it is one of the first ten of its second.
    pub(crate) fn is_low(&self, now: Timestamp) -> bool {
        let second = now.as_second().cast_unsigned() << 32;
        let counted = |lines: u64| {
            let same = lines >> 32 == second >> 32;
            Some(if same {
                lines.saturating_add(1)
            } else {
                second | 1
            })
        };
        let before = self
            .lines
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted);
        let (Ok(before) | Err(before)) = before;
        let in_this_second = before >> 32 == second >> 32;
        !in_this_second || (before & u64::from(u32::MAX)) < u64::from(LOW_LINES_PER_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;

    use super::*;

    #[test]
    fn the_first_ten_lines_of_each_second_are_low() {
        let (rate, start) = (Rate::default(), Timestamp::UNIX_EPOCH + 7.hours());
        let low = |at: Timestamp| (0..25).filter(|_| rate.is_low(at)).count();
        assert_eq!(low(start), 10);
        assert_eq!(low(start + 999.milliseconds()), 0);
        assert_eq!(low(start + 1.second()), 10);
        // The clock was set back.
        assert_eq!(low(start - 1.hour()), 10);
    }
}
