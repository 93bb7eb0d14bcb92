//! [`Attempt`]: the number of an attempt, and the failures before it.

use jiff::Timestamp;

/// One attempt of one handler at one record, and the failures before it.
///
/// Stored between attempts. `retry::decide` computes the next one.
///
/// ```
/// use outbox::__private::Attempt;
///
/// let attempt = Attempt::first();
/// assert_eq!((attempt.number, attempt.failure_count), (1, 0));
/// assert!(!attempt.is_retry());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// 1 for the first invocation. Failures of the kind `unavailable` count too.
    pub number: u32,
    /// The number of earlier failures that used up a retry.
    pub failure_count: u32,
    /// The time of the first failure of any kind, `unavailable` included. `max_elapsed` starts there.
    pub first_failed_at: Option<Timestamp>,
}

impl Attempt {
    /// The first invocation.
    #[must_use]
    pub const fn first() -> Self {
        Self {
            number: 1,
            failure_count: 0,
            first_failed_at: None,
        }
    }

    /// Whether the handler has been invoked with this record before.
    #[must_use]
    pub const fn is_retry(&self) -> bool {
        self.number > 1
    }
}
