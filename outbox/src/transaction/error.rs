//! [`TransactionError`]: why a transaction did not come to an end that it wanted.

use std::{error::Error, fmt};

use super::Reason;

/// A transaction that failed: the last cause, how many attempts were made, and why it stopped.
///
/// Nothing of it is left in the database, unless [`outcome_is_unknown`](Self::outcome_is_unknown).
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
    pub(crate) operation: &'static str,
    pub(crate) attempts: u32,
    pub(crate) stopped: Stopped,
    pub(crate) reason: Reason,
    pub(crate) unknown: bool,
    pub(crate) cause: Cause<E>,
    /// How the closure's error is seen as one; not every error type is one.
    pub(crate) as_error: fn(&E) -> &(dyn Error + 'static),
}

/// Why there was no further attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Stopped {
    /// It would fail again, or it is not safe to try again.
    #[error("it is not retried after this")]
    NotRetryable,
    /// The policy allows no more attempts.
    #[error("no attempts are left")]
    Attempts,
    /// There was no time left for another attempt.
    #[error("there is no time left")]
    Deadline,
    /// The caller gave up.
    #[error("it was cancelled")]
    Cancelled,
    /// The callers of this operation have used up the retries that they have together.
    #[error("the operation's retry budget is used up")]
    Budget,
    /// The database was unreachable lately; the next probe is not due.
    #[error("the database was unreachable lately and is not tried before the next probe")]
    CircuitOpen,
}

/// What went wrong in the last attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause<E> {
    /// The closure returned an error.
    Closure(E),
    /// The database failed outside of the closure.
    Database {
        /// What was being done.
        doing: &'static str,
        /// What the database says.
        source: sqlx::Error,
    },
    /// The command cannot be carried out under this id.
    Command(CommandError),
    /// The closure kept the transaction, as in a task of its own; it was not committed.
    Kept,
    /// The commit was not answered in time.
    Unanswered,
    /// There was no attempt, or it was stopped in the middle and rolled back.
    Stopped,
}

/// What is wrong with a command.
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
        /// Its length.
        bytes: usize,
    },
    /// The request or the result is not to be had as JSON.
    #[error("{what} of the command cannot be written as JSON")]
    Encode {
        /// Which of them.
        what: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The stored result is not one of this type.
    #[error(
        "the stored result of the command cannot be read as this type: keep the type readable for as long as results are kept"
    )]
    Decode(#[source] serde_json::Error),
    /// Commands write, so they cannot be read-only.
    #[error("a command stores its result, so its transaction cannot be read-only")]
    ReadOnly,
}

impl<E> TransactionError<E> {
    /// The name of the operation.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// How many attempts were made.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Why there was no further one.
    #[must_use]
    pub fn stopped(&self) -> Stopped {
        self.stopped
    }

    /// What the last failure means.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The last failure itself.
    #[must_use]
    pub fn cause(&self) -> &Cause<E> {
        &self.cause
    }

    /// The last failure itself.
    #[must_use]
    pub fn into_cause(self) -> Cause<E> {
        self.cause
    }

    /// What the closure said, if that is what ended it.
    #[must_use]
    pub fn rejection(&self) -> Option<&E> {
        match &self.cause {
            Cause::Closure(error) => Some(error),
            _ => None,
        }
    }

    /// Whether it may have been committed all the same, because the connection was lost before
    /// the commit was confirmed.
    #[must_use]
    pub fn outcome_is_unknown(&self) -> bool {
        self.unknown
    }
}

impl<E> fmt::Display for TransactionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            operation,
            attempts,
            stopped,
            reason,
            ..
        } = self;
        let times = if *attempts == 1 {
            "attempt"
        } else {
            "attempts"
        };
        write!(
            f,
            "transaction `{operation}` failed after {attempts} {times} ({reason}): {stopped}"
        )?;
        match &self.cause {
            Cause::Database { doing, .. } => write!(f, "; the database failed while {doing}")?,
            Cause::Kept => f.write_str(
                "; the closure kept the transaction: it has to be dropped before the closure returns",
            )?,
            _ if *reason == Reason::Aborted => f.write_str(
                "; a statement had failed and ended the transaction, and the closure returned no error",
            )?,
            _ => {}
        }
        if self.unknown {
            f.write_str(
                "; the outcome is unknown: the connection was lost before the commit was confirmed. Look whether it has happened before you try again, or use a command id, with which repeating is safe",
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
            .field("outcome_is_unknown", &self.unknown)
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

/// What a closure may fail with: any `std::error::Error`, `anyhow::Error`, or a boxed error.
///
/// `Kind` only keeps these apart, and is never written.
///
/// ```
/// use outbox::transaction::ClosureError;
///
/// fn accepts<Kind>(_: impl ClosureError<Kind>) {}
/// accepts(std::fmt::Error);
/// accepts(anyhow::anyhow!("no"));
/// accepts(Box::<dyn std::error::Error + Send + Sync>::from("no"));
/// ```
#[diagnostic::on_unimplemented(
    message = "a transaction's closure cannot fail with `{Self}`",
    note = "it may be any `std::error::Error + 'static`, `anyhow::Error` or `Box<dyn Error + Send + Sync>`"
)]
pub trait ClosureError<Kind> {
    /// As an error with its causes, among which a database error is looked for.
    fn as_error(&self) -> &(dyn Error + 'static);
}

/// See [`ClosureError`].
#[derive(Debug)]
pub enum Plain {}
/// See [`ClosureError`].
#[derive(Debug)]
pub enum Anyhow {}
/// See [`ClosureError`].
#[derive(Debug)]
pub enum Boxed {}

#[diagnostic::do_not_recommend]
impl<E: Error + 'static> ClosureError<Plain> for E {
    fn as_error(&self) -> &(dyn Error + 'static) {
        self
    }
}

impl ClosureError<Anyhow> for anyhow::Error {
    fn as_error(&self) -> &(dyn Error + 'static) {
        self.as_ref()
    }
}

impl ClosureError<Boxed> for Box<dyn Error + Send + Sync> {
    fn as_error(&self) -> &(dyn Error + 'static) {
        &**self
    }
}
