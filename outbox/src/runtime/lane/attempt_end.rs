//! [`AttemptEnd`]: what an attempt came to, as lanes take it.

use std::time::Duration;

use crate::{
    record::{Attempt, failure::Failure},
    retry::FailedBecause,
};

/// What an attempt came to. Nothing of the user's is in it: errors are text, because the event loop
/// must neither print nor drop what a handler returned. Workers make it, lanes use it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AttemptEnd {
    /// The handler completed the record.
    Handled,
    /// The handler's guard did not want the record.
    Skipped,
    /// The handler failed for good, and its fallback completed the record.
    FellBack(Failure),
    /// The handler failed, and `next` is to be made after `delay`.
    Retry {
        delay: Duration,
        next: Attempt,
        failure: Failure,
    },
    /// The handler failed for good.
    Failed {
        because: FailedBecause,
        failure: Failure,
    },
    /// This process has no handler for the record. As if it had not run.
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
