mod error;
mod outcome;
pub use error::{BoxError, FailureKind, HandlerError, Panicked, TimedOut};
pub use outcome::{IntoOutcome, Outcome};
