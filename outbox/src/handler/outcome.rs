//! [`Outcome`], the result of one invocation, and [`IntoOutcome`], what a handler may return.

use super::HandlerError;

/// The result of one invocation of a handler.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The handler succeeded.
    Handled,
    /// The handler's `when` guard returned `false`, so the handler did not run.
    Skipped,
    /// The handler failed.
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
    /// Converts the returned value.
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
