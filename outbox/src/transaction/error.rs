//! [`TransactionError`]: why a transaction failed.

use std::{error::Error, fmt};

use super::{Reason, closure_error::AsError};
use crate::outbox::named::named;

/// A transaction that failed: the last cause, the number of attempts, and why no other attempt
/// followed.
///
/// The database has kept nothing of it, unless [`outcome_is_unknown`](Self::outcome_is_unknown).
///
/// ```
/// use outbox::transaction::{Stopped, TransactionError};
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("the last reviewer stays")]
/// struct LastReviewer;
///
/// fn answer(error: &TransactionError<LastReviewer>) -> u16 {
///     match error.rejection() {
///         Some(LastReviewer) => 409,
///         None if error.stopped() == Stopped::Deadline => 504,
///         None => 503,
///     }
/// }
/// ```
pub struct TransactionError<E> {
    pub(super) operation: &'static str,
    pub(super) attempts: u32,
    pub(super) stopped: Stopped,
    pub(super) reason: Reason,
    pub(super) is_unknown: bool,
    pub(super) cause: Cause<E>,
    /// Not every `E` implements `Error`; this makes one of it.
    pub(super) as_error: AsError<E>,
}

named! {
    /// Why no other attempt followed.
    Stopped {
        /// Another attempt would fail too, or would not be safe.
        NotRetryable = "the failure is not retryable",
        /// The policy allows no more attempts.
        Attempts = "no attempts are left",
        /// The time until the deadline is too short for another attempt.
        Deadline = "no time is left",
        /// The caller cancelled the run.
        Cancelled = "the run was cancelled",
        /// The calls of this operation have used up their common [`Budget`](super::Budget).
        Budget = "the retry budget of the operation is used up",
        /// The database was unreachable, and the next probe is not due.
        CircuitOpen = "the database is unreachable, and the next probe is not due",
    }
}

impl Error for Stopped {}

/// The failure of the last attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause<E> {
    /// The closure returned an error.
    Closure(E),
    /// The database failed before or after the closure.
    Database {
        /// The step that failed.
        step: Step,
        /// The error of the database.
        source: sqlx::Error,
    },
    /// The command cannot run under this id.
    Command(CommandError),
    /// The closure kept its [`Tx`](crate::Tx), for example in a task; nothing was committed.
    Kept,
    /// The database did not confirm the commit in time.
    Unanswered,
    /// No attempt started, or it was interrupted and rolled back.
    Stopped,
}

named! {
    /// A step of an attempt that this library executes.
    Step {
        /// Beginning the transaction.
        Begin = "beginning the transaction",
        /// Claiming the command id.
        ClaimCommand = "claiming the command id",
        /// Storing the result of the command.
        StoreResult = "storing the result of the command",
        /// Committing.
        Commit = "committing",
    }
}

impl Error for Step {}

impl<E> Cause<E> {
    /// Makes a cause of a failure of the database in this step.
    pub(super) fn at(step: Step) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self::Database { step, source }
    }
}

/// Why a command cannot run under its id.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The id belongs to another request.
    #[error(
        "this command id was used before with a different request: give the new request an id of its own"
    )]
    DifferentRequest,
    /// The id cannot be stored.
    #[error("a command id has 1 to 255 bytes and no NUL, and this one has {bytes} bytes")]
    BadId {
        /// The length of the id.
        bytes: usize,
    },
    /// The request has no form as JSON.
    #[error("the request of the command cannot be written as JSON")]
    EncodeRequest(#[source] serde_json::Error),
    /// The result has no form as JSON. The transaction was rolled back.
    #[error("the result of the command cannot be written as JSON")]
    EncodeResult(#[source] serde_json::Error),
    /// The stored result has another type.
    #[error(
        "the stored result of the command cannot be read as this type: keep the type readable for as long as results are kept"
    )]
    DecodeResult(#[source] serde_json::Error),
    /// A command writes its result, so its transaction cannot be read-only.
    #[error("a command stores its result, so its transaction cannot be read-only")]
    ReadOnly,
}

impl<E> TransactionError<E> {
    /// The name of the operation.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// The number of attempts that started.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Why no other attempt followed.
    #[must_use]
    pub fn stopped(&self) -> Stopped {
        self.stopped
    }

    /// What the last failure means.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The last failure.
    #[must_use]
    pub fn cause(&self) -> &Cause<E> {
        &self.cause
    }

    /// The last failure.
    #[must_use]
    pub fn into_cause(self) -> Cause<E> {
        self.cause
    }

    /// The error of the closure, if it is the last failure.
    #[must_use]
    pub fn rejection(&self) -> Option<&E> {
        match &self.cause {
            Cause::Closure(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the transaction may have been committed: the connection was lost before the
    /// database confirmed the commit.
    #[must_use]
    pub fn outcome_is_unknown(&self) -> bool {
        self.is_unknown
    }
}

impl<E> fmt::Display for TransactionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, attempts) = (self.operation, self.attempts);
        let (stopped, reason) = (self.stopped, self.reason);
        let plural = if attempts == 1 { "" } else { "s" };
        write!(
            f,
            "transaction `{operation}` failed after {attempts} attempt{plural} ({reason}): {stopped}"
        )?;
        match &self.cause {
            Cause::Database { step, .. } => write!(f, "; the database failed while {step}")?,
            Cause::Kept => f.write_str(
                "; the closure kept the transaction: it has to be dropped before the closure returns",
            )?,
            _ if reason == Reason::Aborted => f.write_str(
                "; a statement failed and ended the transaction, and the closure returned no error",
            )?,
            _ => {}
        }
        if self.is_unknown {
            f.write_str(
                "; the outcome is unknown: the connection was lost before the commit was confirmed. Check whether it was committed before you try again, or use a command id, which makes repeating safe",
            )?;
        }
        Ok(())
    }
}

impl<E: fmt::Debug> fmt::Debug for TransactionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionError")
            .field("operation", &self.operation)
            .field("attempts", &self.attempts)
            .field("stopped", &self.stopped)
            .field("reason", &self.reason)
            .field("outcome_is_unknown", &self.is_unknown)
            .field("cause", &self.cause)
            .finish_non_exhaustive()
    }
}

impl<E: fmt::Debug> Error for TransactionError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            Cause::Closure(error) => Some((self.as_error)(error)),
            Cause::Database { source, .. } => Some(source),
            Cause::Command(error) => Some(error),
            Cause::Kept | Cause::Unanswered | Cause::Stopped => None,
        }
    }
}
