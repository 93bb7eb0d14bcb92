//! [`Deadline`]: the time by which the caller needs the answer.

use std::time::Duration;

use jiff::Timestamp;

use crate::outbox::clock::later;

/// The time by which the caller needs the answer.
///
/// No attempt starts, and no wait begins, if the deadline leaves too little time. An attempt that
/// runs at the deadline is rolled back, and its statement ends on the server. A commit that was sent is waited for, for up to five
/// seconds longer.
///
/// ```
/// use std::time::Duration;
/// use outbox::transaction::Deadline;
///
/// // Three seconds after the call of `run`, minus half a second to send the answer.
/// let deadline = Deadline::after(Duration::from_secs(3)).minus(Duration::from_millis(500));
/// assert_eq!(deadline, Deadline::after(Duration::from_millis(2500)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a deadline is given to a transaction"]
pub struct Deadline(When);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    After(Duration),
    At(Timestamp),
}

impl Deadline {
    /// This time after the call of `run`.
    pub const fn after(time: Duration) -> Self {
        Self(When::After(time))
    }

    /// This moment, such as the end of the request.
    pub const fn at(time: Timestamp) -> Self {
        Self(When::At(time))
    }

    /// The same deadline, earlier by a safety margin.
    pub fn minus(self, margin: Duration) -> Self {
        Self(match self.0 {
            When::After(time) => When::After(time.saturating_sub(margin)),
            When::At(time) => When::At(time.checked_sub(margin).unwrap_or(Timestamp::MIN)),
        })
    }

    /// The time that is left at this moment, or zero if the deadline has passed. A deadline that was
    /// made with [`after`](Self::after) starts with the call of `run`: before that, its whole time is
    /// left.
    ///
    /// ```
    /// use std::time::Duration;
    /// use jiff::Timestamp;
    /// use outbox::transaction::Deadline;
    ///
    /// let end_of_request = "2026-03-01T12:00:03Z".parse::<Timestamp>()?;
    /// let deadline = Deadline::at(end_of_request).minus(Duration::from_millis(500));
    /// let now = "2026-03-01T12:00:00Z".parse::<Timestamp>()?;
    /// assert_eq!(deadline.remaining(now), Duration::from_millis(2500));
    /// // A call that takes up to 2 s fits in; then 500 ms are left for the transaction.
    /// assert!(deadline.has_time_for(now, Duration::from_secs(2)));
    /// # Ok::<(), jiff::Error>(())
    /// ```
    #[must_use]
    pub fn remaining(self, now: Timestamp) -> Duration {
        remaining(self.from(now), now)
    }

    /// Whether work that starts at this moment and takes `needed` ends before the deadline.
    #[must_use]
    pub fn has_time_for(self, now: Timestamp, needed: Duration) -> bool {
        has_time(Some(self.remaining(now)), needed)
    }

    /// The moment of the deadline, for a run that starts now.
    pub(super) fn from(self, now: Timestamp) -> Timestamp {
        match self.0 {
            When::After(time) => later(now, time),
            When::At(time) => time,
        }
    }
}

/// The time from `now` until `end`, or zero if `end` has passed.
pub(super) fn remaining(end: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(end.duration_since(now)).unwrap_or(Duration::ZERO)
}

/// Whether work that takes `needed` ends within `left`, the time until the deadline if there is one.
pub(super) fn has_time(left: Option<Duration>, needed: Duration) -> bool {
    left.is_none_or(|left| needed < left)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_delay_and_the_attempt_have_to_fit() {
        let now = Timestamp::UNIX_EPOCH;
        let end = Deadline::after(ms(100)).from(now);
        let fits = |passed, needed| has_time(Some(remaining(end, later(now, passed))), needed);
        assert!(fits(ms(0), ms(40) + ms(50)));
        assert!(!fits(ms(0), ms(50) + ms(50)));
        assert!(!fits(ms(60), ms(50)));
        assert!(!fits(ms(200), ms(0)));
        assert!(has_time(None, Duration::MAX));
    }

    #[test]
    fn a_margin_comes_off_either_form() {
        let now = Timestamp::UNIX_EPOCH;
        let at = Deadline::at(later(now, ms(100))).minus(ms(30));
        let after = Deadline::after(ms(100)).minus(ms(30));
        assert_eq!(at.from(now), after.from(now));
        assert_eq!(Deadline::after(ms(1)).minus(Duration::MAX).from(now), now);
    }

    #[test]
    fn the_remaining_time_ends_at_zero() {
        let now = Timestamp::UNIX_EPOCH;
        let at = Deadline::at(later(now, ms(100)));
        let left = |passed| at.remaining(later(now, ms(passed)));
        assert_eq!([0, 40, 100, 500].map(left), [ms(100), ms(60), ms(0), ms(0)]);
        assert!(at.has_time_for(now, ms(99)));
        assert!(!at.has_time_for(now, ms(100)));
        assert!(!at.has_time_for(later(now, ms(500)), ms(0)));
        // Its time starts with the call of `run`.
        let after = Deadline::after(ms(100));
        assert_eq!(after.remaining(later(now, ms(500))), ms(100));
    }

    proptest! {
        #[test]
        fn an_attempt_that_may_start_ends_in_time(
            total in 0..10_000u64, passed in 0..20_000u64, delay: u64, attempt: u64,
        ) {
            let start = Timestamp::UNIX_EPOCH;
            let (end, now) = (later(start, ms(total)), later(start, ms(passed)));
            let needed = ms(delay).saturating_add(ms(attempt));
            if has_time(Some(remaining(end, now)), needed) {
                prop_assert!(passed + delay + attempt < total);
            }
        }
    }
}
