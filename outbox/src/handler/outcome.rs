//! What a handler may return, and what one invocation of it came to.

use super::HandlerError;

/// What one invocation of a handler came to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It succeeded.
    Handled,
    /// Its `when` guard did not want the event.
    Skipped,
    /// It failed.
    Failed(HandlerError),
}

/// What a handler may return: `()`, or `Result<(), E>` for any error `E`.
///
/// ```
/// use outbox::handler::{IntoOutcome, Outcome};
///
/// assert!(matches!(().into_outcome(), Outcome::Handled));
/// assert!(matches!(Err::<(), _>("no").into_outcome(), Outcome::Failed(_)));
/// assert!(matches!(Err::<(), _>(anyhow::anyhow!("no")).into_outcome(), Outcome::Failed(_)));
/// ```
#[diagnostic::on_unimplemented(
    message = "an outbox handler cannot return `{Self}`",
    label = "expected `()` or `Result<(), E>`",
    note = "`E` may be any `std::error::Error + Send + Sync + 'static`, `anyhow::Error`, `Box<dyn Error + Send + Sync>`, `String`, `&'static str` or `outbox::HandlerError`"
)]
pub trait IntoOutcome {
    /// Whether it succeeded, or how it failed.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Handled
    }
}

#[diagnostic::do_not_recommend]
impl<E: Into<HandlerError>> IntoOutcome for Result<(), E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(()) => Outcome::Handled,
            Err(error) => Outcome::Failed(error.into()),
        }
    }
}
