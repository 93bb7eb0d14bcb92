//! [`Step`]: one invocation, and what it came to.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    handler::HandlerError,
    retry::{Completion, Decision, FailedBecause},
    runtime::lane::Work,
};

/// One invocation of one handler that the [`Kit`](super::Kit) made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The record that was handled.
    pub record_id: i64,
    /// The stored name of its event.
    pub event: String,
    /// Its key.
    pub key: String,
    /// The id of the handler.
    pub handler: String,
    /// 1 for the first invocation of this handler with this record.
    pub attempt: u32,
    /// When it ran, by the kit's clock.
    pub at: Timestamp,
    /// What came of it.
    pub outcome: StepOutcome,
    /// The error with everything that caused it, where the handler failed.
    pub error: Option<String>,
}

/// What an invocation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepOutcome {
    /// The handler is done with the record.
    Completed,
    /// The handler's `when` guard did not want the record.
    Skipped,
    /// The handler failed for good, and its fallback succeeded.
    FellBack {
        /// Why it was not tried again.
        because: FailedBecause,
    },
    /// The handler failed and will be tried again.
    Retry {
        /// After this long.
        delay: Duration,
    },
    /// The handler failed for good; the record stays.
    Failed {
        /// Why it is not tried again.
        because: FailedBecause,
    },
}

impl Step {
    /// `None` for a decision that no invocation comes to.
    pub(super) fn of(
        work: &Work,
        handler: &str,
        at: Timestamp,
        decision: &Decision,
    ) -> Option<Self> {
        let (outcome, error): (StepOutcome, Option<&HandlerError>) = match decision {
            Decision::Completed(Completion::Handled) => (StepOutcome::Completed, None),
            Decision::Completed(Completion::Skipped) => (StepOutcome::Skipped, None),
            Decision::Completed(Completion::FellBack { error, because }) => {
                (StepOutcome::FellBack { because: *because }, Some(error))
            }
            Decision::RetryAt { delay, error, .. } => {
                (StepOutcome::Retry { delay: *delay }, Some(error))
            }
            Decision::Failed { error, because } => {
                (StepOutcome::Failed { because: *because }, Some(error))
            }
            Decision::NoHandler(_) => return None,
        };
        Some(Self {
            record_id: work.record.id,
            event: work.record.event.clone(),
            key: work.record.key.clone(),
            handler: handler.to_owned(),
            attempt: work.attempt.number,
            at,
            outcome,
            error: error.map(|error| format!("{error:#}")),
        })
    }
}
