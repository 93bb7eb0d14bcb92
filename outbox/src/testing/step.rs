//! [`Step`]: one invocation and its result.

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
    /// The id of the record.
    pub record_id: i64,
    /// The name of the event.
    pub event: String,
    /// The key of the record.
    pub key: String,
    /// The id of the handler.
    pub handler: String,
    /// 1 for the first invocation of this handler with this record.
    pub attempt: u32,
    /// When the handler ran, on the kit's clock.
    pub at: Timestamp,
    /// The result.
    pub outcome: StepOutcome,
    /// The handler's error with its causes, if the handler failed.
    pub error: Option<String>,
}

/// The result of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepOutcome {
    /// The handler is done with the record.
    Completed,
    /// The handler's `when` guard returned `false`.
    Skipped,
    /// The handler failed permanently, and its fallback succeeded.
    FellBack {
        /// Why there was no further attempt.
        because: FailedBecause,
    },
    /// The handler failed, and the kit will try it again.
    Retry {
        /// The time until the next attempt.
        delay: Duration,
    },
    /// The handler failed permanently. The record stays until it is replayed or discarded.
    Failed {
        /// Why there is no further attempt.
        because: FailedBecause,
    },
}

impl Step {
    /// `None` if no handler ran.
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
