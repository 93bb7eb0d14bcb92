//! [`Failure`]: a failed attempt, and what its cause means.

use super::{
    Cause, Reason, Step,
    reason::{has_io_error, reason_in},
    run::Run,
};
use crate::store::{Database, NotCommitted};

/// A failed attempt, or one that was not allowed to start.
pub(super) struct Failure<E> {
    pub(super) cause: Cause<E>,
    pub(super) reason: Reason,
}

impl<E> Failure<E> {
    pub(super) fn new(cause: Cause<E>, reason: Reason) -> Self {
        Self { cause, reason }
    }
}

impl<Db: Database, T, E> Run<'_, Db, T, E> {
    /// Asks the policy first, then looks for a database error. `is_lost` says that the attempt's
    /// own connection was gone when it was rolled back.
    pub(super) fn classify(&self, cause: Cause<E>, is_lost: bool) -> Failure<E> {
        let error = match &cause {
            Cause::Closure(error) => (self.as_error)(error),
            Cause::Database { source, .. } => source,
            Cause::Command(_) => return Failure::new(cause, Reason::Command),
            Cause::Kept | Cause::Unanswered | Cause::Stopped => {
                return Failure::new(cause, Reason::Other);
            }
        };
        // The I/O error may be that of any connection, so both signs are needed.
        let lost = || (is_lost && has_io_error(error)).then_some(Reason::ConnectionLost);
        let own = self.settings.policy.own_reason(error);
        let reason = own.or_else(|| reason_in::<Db>(error)).or_else(lost);
        Failure::new(cause, reason.unwrap_or(Reason::Rejected))
    }

    /// A commit that the database did not confirm. The policy is not asked whether its outcome is
    /// unknown.
    pub(super) fn classify_commit(&self, error: NotCommitted) -> Failure<E> {
        let is_unknown =
            error.commit_sent && Reason::of::<Db>(&error.source).leaves_commit_unknown();
        let cause = Cause::at(Step::Commit)(error.source);
        if is_unknown {
            return Failure::new(cause, Reason::CommitUnknown);
        }
        self.classify(cause, false)
    }
}
