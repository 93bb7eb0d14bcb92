//! [`Failure`]: a failed attempt, and what its cause means.

use super::{
    Cause, ClosureError, Reason, Step, TxRetry,
    reason::{has_io_error, reason_in},
};
use crate::store::{Database, NotCommitted};

/// A failure of the database in this step.
pub(super) fn at<E>(step: Step) -> impl FnOnce(sqlx::Error) -> Cause<E> {
    move |source| Cause::Database { step, source }
}

/// A failed attempt, or one that was not allowed to start.
pub(super) struct Failure<E> {
    pub(super) cause: Cause<E>,
    pub(super) reason: Reason,
}

impl<E> Failure<E> {
    pub(super) fn new(cause: Cause<E>, reason: Reason) -> Self {
        Self { cause, reason }
    }

    /// Asks the policy first, then looks for a database error. `is_lost` says that the attempt's
    /// own connection was gone when it was rolled back.
    pub(super) fn classify<Db: Database, Kind>(
        cause: Cause<E>,
        policy: &TxRetry,
        is_lost: bool,
    ) -> Self
    where
        E: ClosureError<Kind>,
    {
        let error = match &cause {
            Cause::Closure(error) => error.as_error(),
            Cause::Database { source, .. } => source,
            Cause::Command(_) => return Self::new(cause, Reason::Command),
            Cause::Kept | Cause::Unanswered | Cause::Stopped => {
                return Self::new(cause, Reason::Other);
            }
        };
        // The I/O error may be that of any connection, so both signs are needed.
        let lost = || (is_lost && has_io_error(error)).then_some(Reason::ConnectionLost);
        let reason = policy
            .own_reason(error)
            .or_else(|| reason_in::<Db>(error))
            .or_else(lost)
            .unwrap_or(Reason::Rejected);
        Self::new(cause, reason)
    }

    /// A commit that the database did not confirm. The policy is not asked whether its outcome is
    /// unknown.
    pub(super) fn of_commit<Db: Database, Kind>(error: NotCommitted, policy: &TxRetry) -> Self
    where
        E: ClosureError<Kind>,
    {
        let is_unknown = error.asked && Reason::of::<Db>(&error.source).leaves_commit_unknown();
        let cause = at(Step::Commit)(error.source);
        if is_unknown {
            return Self::new(cause, Reason::CommitUnknown);
        }
        Self::classify::<Db, Kind>(cause, policy, false)
    }
}
