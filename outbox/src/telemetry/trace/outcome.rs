//! The words for what came of a publication, an attempt or an invocation: values of the fields
//! `outcome`, `failure` and `because`. Stable, since people search for them.

use crate::{
    handler::{FailureKind, HandlerError, Outcome},
    retry::{Completion, Decision, FailedBecause},
};

/// What came of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Published,
    Duplicate,
    Failed,
}

impl Sent {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Duplicate => "duplicate",
            Self::Failed => "failed",
        }
    }
}

/// Of an attempt, and the error that it ended with. None: it was not begun.
pub(super) fn of_attempt(decision: Option<&Decision>) -> (&'static str, Option<&HandlerError>) {
    match decision {
        Some(Decision::Completed(Completion::Handled)) => ("completed", None),
        Some(Decision::Completed(Completion::Skipped)) => ("skipped", None),
        Some(Decision::Completed(Completion::FellBack { error, .. })) => ("fell_back", Some(error)),
        Some(Decision::RetryAt { error, .. }) => ("retry", Some(error)),
        Some(Decision::Failed { error, .. }) => ("failed", Some(error)),
        Some(Decision::NoHandler(_)) => ("no_handler", None),
        None => ("not_begun", None),
    }
}

/// Of one invocation of a handler or fallback.
pub(super) fn of_invocation(outcome: &Outcome) -> (&'static str, Option<&HandlerError>) {
    match outcome {
        Outcome::Handled => ("completed", None),
        Outcome::Skipped => ("skipped", None),
        Outcome::Failed(error) => ("failed", Some(error)),
    }
}

/// What kind of failure it was; never its text, which may quote what was sent.
pub(super) fn failure(error: &HandlerError) -> &'static str {
    match error.kind() {
        FailureKind::Error => "error",
        FailureKind::Permanent => "permanent",
        FailureKind::RetryAfter(_) => "retry_after",
        FailureKind::Unavailable => "unavailable",
        FailureKind::TimedOut => "timed_out",
        FailureKind::Panicked => "panicked",
        FailureKind::Undecodable => "undecodable",
        FailureKind::Invalid => "invalid",
    }
}

/// Why there is no further attempt.
pub(super) fn because(because: FailedBecause) -> &'static str {
    match because {
        FailedBecause::Permanent => "permanent",
        FailedBecause::BadPayload => "bad_payload",
        FailedBecause::NotRetryable => "not_retryable",
        FailedBecause::RetriesExhausted => "retries_exhausted",
        FailedBecause::TimeExhausted => "time_exhausted",
        FailedBecause::PolicyPanicked => "policy_panicked",
    }
}
