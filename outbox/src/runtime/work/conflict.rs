//! Conflicts of a handler's transaction with another one: deadlock, serialization failure, busy.  (pure)
//!
//! Such a failure says nothing about the event. The attempt is repeated at once, a few times, and uses up
//! no retry. After that the database counts as unavailable.

use std::time::Duration;

use crate::{
    handler::{FailureKind, HandlerError, Outcome},
    retry::{ThreadRandom, between},
    store::Database,
    transaction::Reason,
};

/// How often an attempt is repeated at once.
pub(super) const MAX_REPEATS: u32 = 4;
/// The longest delay before the first repeat. It doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(10);

/// Whether an attempt failed because of another transaction. Not if the handler has said that the
/// failure is permanent, or when to try again.
pub(super) fn is_conflict<Db: Database>(outcome: &Outcome) -> bool {
    let Outcome::Failed(error) = outcome else {
        return false;
    };
    let may_repeat = matches!(error.kind(), FailureKind::Error | FailureKind::Unavailable);
    may_repeat
        && error
            .find()
            .map(Reason::of::<Db>)
            .is_some_and(Reason::is_conflict)
}

/// The delay before a repeat, from half of its longest value on: two transactions that conflicted must
/// not meet again. `repeats`: how many there were.
pub(super) fn delay(repeats: u32) -> Duration {
    let longest = FIRST_DELAY * 2_u32.saturating_pow(repeats.min(MAX_REPEATS));
    between(&ThreadRandom, longest / 2, longest)
}

/// The failure after the last repeat.
pub(super) fn exhausted(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Failed(error) if error.kind() == FailureKind::Error => {
            Outcome::Failed(HandlerError::unavailable(error.into_error()))
        }
        other => other,
    }
}
