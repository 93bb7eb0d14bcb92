//! The values of the span fields `outcome` and `because`. Dashboards and searches use them, so they
//! are stable. The values of `failure` are [`FailureKind::name`](crate::handler::FailureKind::name).

use crate::{
    handler::{HandlerError, Outcome},
    retry::{Completion, Decision, FailedBecause},
};

/// The outcome of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublishOutcome {
    Published,
    Duplicate,
    Failed,
}

impl PublishOutcome {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Duplicate => "duplicate",
            Self::Failed => "failed",
        }
    }
}

/// The outcome of an attempt and its error, if it failed. `None`: the attempt was not started.
pub(super) fn of_attempt(decision: Option<&Decision>) -> (&'static str, Option<&HandlerError>) {
    match decision {
        Some(Decision::Completed(Completion::Handled)) => ("completed", None),
        Some(Decision::Completed(Completion::Skipped)) => ("skipped", None),
        Some(Decision::Completed(Completion::FellBack { error, .. })) => ("fell_back", Some(error)),
        Some(Decision::RetryAt { error, .. }) => ("retry", Some(error)),
        Some(Decision::Failed { error, .. }) => ("failed", Some(error)),
        Some(Decision::NoHandler(_)) => ("no_handler", None),
        None => ("not_started", None),
    }
}

/// The outcome of one invocation of a handler or fallback, and its error, if it failed.
pub(super) fn of_invocation(outcome: &Outcome) -> (&'static str, Option<&HandlerError>) {
    match outcome {
        Outcome::Handled => ("completed", None),
        Outcome::Skipped => ("skipped", None),
        Outcome::Failed(error) => ("failed", Some(error)),
    }
}

/// The reasons why no retry follows, also as labels of metrics. In the order of [`because_index`].
pub(crate) const BECAUSE: [&str; 6] = [
    "permanent",
    "bad_payload",
    "not_retryable",
    "retries_exhausted",
    "time_exhausted",
    "policy_panicked",
];

/// The position of a reason in [`BECAUSE`].
pub(crate) const fn because_index(because: FailedBecause) -> usize {
    match because {
        FailedBecause::Permanent => 0,
        FailedBecause::BadPayload => 1,
        FailedBecause::NotRetryable => 2,
        FailedBecause::RetriesExhausted => 3,
        FailedBecause::TimeExhausted => 4,
        FailedBecause::PolicyPanicked => 5,
    }
}

pub(super) fn because(because: FailedBecause) -> &'static str {
    BECAUSE[because_index(because)]
}
