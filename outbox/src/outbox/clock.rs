//! [`Clock`]: the source of the current time. No other code of this crate reads the time of day.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

/// Returns the current time, and waits. Every decision that depends on time uses a `Clock`, so that
/// a test can control it.
///
/// ```
/// use outbox::clock::{Clock, SystemClock};
///
/// fn is_over(deadline: jiff::Timestamp, clock: &dyn Clock) -> bool {
///     clock.now() > deadline
/// }
/// assert!(is_over(jiff::Timestamp::UNIX_EPOCH, &SystemClock));
/// ```
pub trait Clock: fmt::Debug + Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;

    /// Waits between the attempts of a [transaction](crate::transaction). Default: the timer of
    /// tokio. A test can override this to skip the wait:
    ///
    /// ```
    /// use std::{pin::Pin, time::Duration};
    /// use outbox::clock::{Clock, ManualClock};
    ///
    /// #[derive(Debug, Default)]
    /// struct FastClock(ManualClock);
    ///
    /// impl Clock for FastClock {
    ///     fn now(&self) -> jiff::Timestamp {
    ///         self.0.now()
    ///     }
    ///
    ///     fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
    ///         self.0.advance(time);
    ///         Box::pin(async {})
    ///     }
    /// }
    /// ```
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place that reads the time of day"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that a test advances. Its `sleep` uses the timer of tokio.
///
/// ```
/// use std::time::Duration;
/// use outbox::clock::{Clock, ManualClock};
///
/// let clock = ManualClock::default();
/// let start = clock.now();
/// clock.advance(Duration::from_secs(3600));
/// assert_eq!(clock.now().duration_since(start).as_hours(), 1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ManualClock {
    now: Arc<Mutex<Timestamp>>,
}

impl ManualClock {
    /// A clock that starts at this time.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        let now = Arc::new(Mutex::new(now));
        Self { now }
    }

    /// Advances this clock and all of its clones.
    pub fn advance(&self, by: Duration) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = later(*now, by);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The longest time that is added to an `Instant`. A longer time could overflow.
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// `start` plus `by`, or the latest timestamp if that overflows.
pub(crate) fn later(start: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).ok();
    let later = by.and_then(|by| start.checked_add(by).ok());
    later.unwrap_or(Timestamp::MAX)
}
