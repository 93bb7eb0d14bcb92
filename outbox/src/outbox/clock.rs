//! The only place that reads the time.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

/// Tells the time. Injected wherever time decides something, so that a test never waits.
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
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place that reads time"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that stands still until it is moved.
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
    /// A clock that shows this time.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self {
            now: Arc::new(Mutex::new(now)),
        }
    }

    /// Moves the clock, and every clone of it, forward.
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

/// The most that is added to an instant: a longer time may be none any more.
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// That much after `start`, or the last moment there is.
pub(crate) fn later(start: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by)
        .ok()
        .and_then(|by| start.checked_add(by).ok())
        .unwrap_or(Timestamp::MAX)
}
