//! [`Decision`]: what happens to a record after an attempt.

use std::{fmt, time::Duration};

use jiff::Timestamp;

use crate::{handler::HandlerError, record::Attempt};

/// What the dispatcher does next with a record for one handler. [`decide`](super::decide::decide()) makes it.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "a decision that is not carried out loses the outcome of the attempt"]
pub enum Decision {
    /// The handler is done with the record and does not get it again.
    Completed(Completion),
    /// The handler gets the record again.
    RetryAt {
        /// When the next attempt is due.
        at: Timestamp,
        /// The time from the failure to `at`.
        delay: Duration,
        /// The next attempt.
        next: Attempt,
        /// Why this attempt failed.
        error: HandlerError,
    },
    /// The failure is final. The record stays until an operator replays or discards it.
    Failed {
        /// Why the last attempt failed.
        error: HandlerError,
        /// Why there is no further attempt.
        because: FailedBecause,
    },
    /// No handler of this process takes the record. The record stays as it is, and no attempt is
    /// counted.
    NoHandler(NoHandler),
}

/// How a handler came to be done with a record.
#[derive(Debug)]
#[non_exhaustive]
pub enum Completion {
    /// The handler succeeded.
    Handled,
    /// The handler's `when` guard returned `false`.
    Skipped,
    /// The handler failed permanently, and its fallback succeeded.
    FellBack {
        /// Why the handler failed.
        error: HandlerError,
        /// Why there was no further attempt.
        because: FailedBecause,
    },
}

/// Why a failure is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailedBecause {
    /// The handler returned [`HandlerError::permanent`].
    Permanent,
    /// The payload cannot be decoded as the handler's event, or the `validate` of the event or of the
    /// handler refused it.
    BadPayload,
    /// The policy does not retry this error.
    NotRetryable,
    /// The policy allows no further retry.
    RetriesExhausted,
    /// The next retry would start later than `max_elapsed` allows.
    TimeExhausted,
    /// The policy itself panicked.
    PolicyPanicked,
}

impl fmt::Display for FailedBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Permanent => "the handler returned a permanent error",
            Self::BadPayload => "the payload is not a valid event",
            Self::NotRetryable => "the policy does not retry this error",
            Self::RetriesExhausted => "all retries are used up",
            Self::TimeExhausted => "the time for retries is used up",
            Self::PolicyPanicked => "the retry policy panicked",
        })
    }
}

/// No handler of this process takes an event.
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
    /// The id of the handler, if the caller named one.
    pub handler: Option<String>,
    /// The handled event whose name is most similar.
    pub nearest: Option<String>,
}
