//! [`Decision`]: what becomes of a record after an attempt.

use std::{fmt, time::Duration};

use jiff::Timestamp;

use crate::{handler::HandlerError, record::Attempt};

/// What happens next to a record for one handler. See `retry::decide`.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "a decision that is not carried out loses the outcome of the attempt"]
pub enum Decision {
    /// Done; the handler will not see this record again.
    Completed(Completion),
    /// Not done; to be tried again.
    RetryAt {
        /// When it is due.
        at: Timestamp,
        /// How long after the failure that is.
        delay: Duration,
        /// The attempt that is due then.
        next: Attempt,
        /// Why this attempt failed.
        error: HandlerError,
    },
    /// Given up; the record stays until it is replayed or discarded.
    Failed {
        /// Why the last attempt failed.
        error: HandlerError,
        /// Why there is no further one.
        because: FailedBecause,
    },
    /// Nothing in this process takes the record. It stays as it is and uses up no attempt.
    NoHandler(NoHandler),
}

/// How a record came to be done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Completion {
    /// The handler succeeded.
    Handled,
    /// The handler's `when` guard did not want it.
    Skipped,
    /// The handler failed for good and its fallback succeeded.
    FellBack {
        /// Why the handler failed.
        error: HandlerError,
        /// Why it was not tried again.
        because: FailedBecause,
    },
}

/// Why a failure is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailedBecause {
    /// The handler said so, with [`HandlerError::permanent`].
    Permanent,
    /// The payload cannot be read as the handler's event, or is not a valid one.
    BadPayload,
    /// The policy does not retry this error.
    NotRetryable,
    /// There were as many retries as allowed.
    RetriesExhausted,
    /// The next retry would start later than `max_elapsed` allows.
    TimeExhausted,
    /// The policy itself panicked.
    PolicyPanicked,
}

impl fmt::Display for FailedBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Permanent => "the handler says it is permanent",
            Self::BadPayload => "the payload is not a valid event",
            Self::NotRetryable => "the policy does not retry this error",
            Self::RetriesExhausted => "all retries are used up",
            Self::TimeExhausted => "the time for retries is used up",
            Self::PolicyPanicked => "the retry policy panicked",
        })
    }
}

/// A record that nothing in this process handles.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no handler{} takes event `{event}`{}; if its handlers are in another crate, name that crate once (`use my_handlers as _;`), or it is not linked and registers nothing",
    .handler.as_ref().map(|handler| format!(" with id `{handler}`")).unwrap_or_default(),
    .nearest.as_ref().map(|nearest| format!(" (there are handlers for `{nearest}`)")).unwrap_or_default()
)]
#[non_exhaustive]
pub struct NoHandler {
    /// The stored name of the event.
    pub event: String,
    /// The handler that was asked for, where the record names one.
    pub handler: Option<String>,
    /// The handled event whose name is most like it.
    pub nearest: Option<String>,
}
