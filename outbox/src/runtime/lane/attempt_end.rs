//! [`AttemptEnd`]: the result of an attempt, as lanes take it.

use std::time::Duration;

use crate::{
    record::{Attempt, failure::Failure},
    retry::FailedBecause,
};

/// The result of an attempt. It holds no value of the user: errors are text, because the event loop
/// must neither print nor drop an error of a handler. Workers make it, lanes consume it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AttemptEnd {
    /// The handler completed the record.
    Handled,
    /// The handler's guard refused the record.
    Skipped,
    /// The handler failed permanently, and its fallback completed the record.
    FellBack(Failure),
    /// The handler failed, and the attempt `next` follows after `delay`.
    Retry {
        delay: Duration,
        next: Attempt,
        failure: Failure,
    },
    /// The handler failed permanently.
    Failed {
        because: FailedBecause,
        failure: Failure,
    },
    /// This process has no handler for the record. It counts as if it had not run.
    NoHandler,
}

impl AttemptEnd {
    /// Whether the record is completed, so that the next of its lane may start.
    pub(crate) fn is_completed(&self) -> bool {
        match self {
            Self::Handled | Self::Skipped | Self::FellBack(_) => true,
            Self::Retry { .. } | Self::Failed { .. } | Self::NoHandler => false,
        }
    }
}
