//! Where a handler stands with a record: which try this is, and what failed before.

use jiff::Timestamp;

/// One try of one handler at one record, with what is known of the tries before it.
///
/// Stored between tries; `retry::decide` computes the next one.
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
    /// 1 for the first invocation. Counts every one, also those of an unavailable other side.
    pub number: u32,
    /// How many invocations failed before this one, of those that use up retries.
    pub failure_count: u32,
    /// When the first of those failures happened; the start of `max_elapsed`.
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

impl Default for Attempt {
    fn default() -> Self {
        Self::first()
    }
}
