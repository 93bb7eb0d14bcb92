//! [`HandlerError`]: how a handler says that it failed, and what that means for the next attempt.

use std::{any::Any, error::Error, fmt, io, iter, time::Duration};

/// Any error, as the standard library boxes it.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// Why an attempt failed: the handler's own error, and what kind of failure it was.
///
/// Every error, `anyhow::Error`, boxed error and string converts into one with `?`, so a handler
/// needs it only to say more than "it failed":
///
/// ```
/// use std::time::Duration;
/// use outbox::HandlerError;
///
/// async fn charge(amount: &str) -> Result<(), HandlerError> {
///     let cents: i64 = amount.parse()?; // an ordinary failure: the policy decides
///     if cents < 0 {
///         return Err(HandlerError::permanent("a negative amount")); // never retried
///     }
///     Err(HandlerError::retry_after(Duration::from_secs(30), "rate limited"))
/// }
/// ```
///
/// It is not a [`std::error::Error`] itself (that would forbid the conversion from every error);
/// [`into_error`](Self::into_error) makes one, and inside a function that returns
/// `anyhow::Result` plain `?` does. The kind survives that, however deep in the chain it ends up.
pub struct HandlerError {
    kind: FailureKind,
    cause: BoxError,
}

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The handler returned an ordinary error.
    Error,
    /// [`HandlerError::permanent`]: never retried.
    Permanent,
    /// [`HandlerError::retry_after`]: retried after exactly that long.
    RetryAfter(Duration),
    /// [`HandlerError::unavailable`]: retried without using up a retry.
    Unavailable,
    /// The handler ran longer than its `timeout`.
    TimedOut,
    /// The handler panicked.
    Panicked,
    /// The payload could not be read as the handler's event.
    Undecodable,
    /// The payload was read, and the event's `validate` refused it.
    Invalid,
}

impl HandlerError {
    /// This event can never be handled: not retried, whatever the policy says.
    pub fn permanent(cause: impl Into<BoxError>) -> Self {
        Self::of_kind(FailureKind::Permanent, cause)
    }

    /// To be tried again after `delay` instead of the policy's delay. Counts as a failure.
    pub fn retry_after(delay: Duration, cause: impl Into<BoxError>) -> Self {
        Self::of_kind(FailureKind::RetryAfter(delay), cause)
    }

    /// The other side is down; this event is not to blame. Retried on the policy's delays for as
    /// long as it takes, without using up `max_retries`.
    pub fn unavailable(cause: impl Into<BoxError>) -> Self {
        Self::of_kind(FailureKind::Unavailable, cause)
    }

    pub(crate) fn of_kind(kind: FailureKind, cause: impl Into<BoxError>) -> Self {
        let cause = cause.into();
        Self { kind, cause }
    }

    /// What kind of failure it was.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// The handler's own error.
    #[must_use]
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.cause
    }

    /// The handler's own error, then what caused it, and so on. An error inside an
    /// [`io::Error`] is part of the chain too.
    pub fn chain(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let first: &(dyn Error + 'static) = &*self.cause;
        iter::successors(Some(first), |&error| {
            // `io::Error::source` skips the error it wraps.
            match error
                .downcast_ref::<io::Error>()
                .and_then(io::Error::get_ref)
            {
                Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
                None => error.source(),
            }
        })
    }

    /// Whether this is an `E`, or was caused by one.
    #[must_use]
    pub fn is<E: Error + 'static>(&self) -> bool {
        self.find::<E>().is_some()
    }

    /// The first `E` in the chain.
    #[must_use]
    pub fn find<E: Error + 'static>(&self) -> Option<&E> {
        self.chain().find_map(<dyn Error>::downcast_ref)
    }

    /// As a [`std::error::Error`], for functions that return one of their own. The kind is found
    /// again when the handler returns it, alone or as the source of another error.
    #[must_use]
    pub fn into_error(self) -> impl Error + Send + Sync + 'static {
        Carried(self)
    }
}

/// The handler failed, and then something that should have dealt with it.
#[derive(Debug, thiserror::Error)]
#[error("the handler failed, and then its {what} ({why})")]
struct AndThen {
    source: BoxError,
    what: &'static str,
    why: String,
}

impl HandlerError {
    /// The same failure, with the one that followed in its text.
    pub(crate) fn and_then(self, what: &'static str, why: &Self) -> Self {
        let and_then = AndThen {
            source: self.cause,
            what,
            why: format!("{why:#}"),
        };
        Self::of_kind(self.kind, and_then)
    }
}

impl<E: Into<BoxError> + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let cause = boxed(error);
        let this = Self::of_kind(FailureKind::Error, cause);
        let carried = this.find::<Carried>().map(|carried| carried.0.kind);
        match carried {
            Some(kind) => Self { kind, ..this },
            None => this,
        }
    }
}

/// `anyhow`'s own conversion to a boxed error hides the type of the error inside, so that no rule
/// over error types could find it; this one keeps it.
fn boxed<E: Into<BoxError> + 'static>(error: E) -> BoxError {
    let mut error = Some(error);
    let any: &mut dyn Any = &mut error;
    if let Some(anyhow) = any
        .downcast_mut::<Option<anyhow::Error>>()
        .and_then(Option::take)
    {
        return anyhow.reallocate_into_boxed_dyn_error_without_backtrace();
    }
    // Only the branch above takes it.
    error.map_or_else(|| "unknown error".into(), Into::into)
}

impl From<HandlerError> for anyhow::Error {
    fn from(error: HandlerError) -> Self {
        Self::new(Carried(error))
    }
}

impl fmt::Display for HandlerError {
    /// The handler's error; with `{:#}` everything that caused it too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        if f.alternate() {
            // A carrier shows the same text as what it carries.
            for cause in self.chain().skip(1).filter(|cause| !cause.is::<Carried>()) {
                write!(f, ": {cause}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerError")
            .field("kind", &self.kind)
            .field("cause", &self.cause)
            .finish()
    }
}

/// A [`HandlerError`] on its way through code that wants a [`std::error::Error`].
struct Carried(HandlerError);

impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.cause.fmt(f)
    }
}

impl Error for Carried {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // Its text is the cause's own; the cause itself has to be found in the chain all the same.
        Some(&*self.0.cause)
    }
}

/// The handler ran longer than its `timeout`. In the chain of such a failure, for
/// [`retry_on`](crate::retry::RetryBuilder::retry_on).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the handler did not finish within {}", humantime::format_duration(*.limit))]
#[non_exhaustive]
pub struct TimedOut {
    /// How long it was allowed to run.
    pub limit: Duration,
}

/// The handler (or its fallback or policy) panicked. In the chain of such a failure, for
/// [`retry_on`](crate::retry::RetryBuilder::retry_on).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("panicked: {message}")]
#[non_exhaustive]
pub struct Panicked {
    /// What it panicked with.
    pub message: String,
}

impl TimedOut {
    pub(crate) fn after(limit: Duration) -> HandlerError {
        HandlerError::of_kind(FailureKind::TimedOut, Self { limit })
    }
}

impl Panicked {
    pub(crate) fn with(payload: &(dyn Any + Send)) -> HandlerError {
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "something that is not text".to_owned());
        HandlerError::of_kind(FailureKind::Panicked, Self { message })
    }
}

#[cfg(test)]
mod tests {
    use std::num::ParseIntError;

    use anyhow::Context as _;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);

    fn parse_error() -> ParseIntError {
        "x".parse::<i32>().unwrap_err()
    }

    #[test]
    fn an_error_is_found_anywhere_in_the_chain() {
        let error: HandlerError = Outer(io::Error::other(parse_error())).into();
        assert!(error.is::<Outer>() && error.is::<io::Error>() && error.is::<ParseIntError>());
        assert!(!error.is::<fmt::Error>());
        assert_eq!(error.to_string(), "outer");
        assert!(format!("{error:#}").starts_with("outer: invalid digit"));
    }

    #[test]
    fn an_error_is_found_inside_anyhow_with_and_without_context() {
        let plain: HandlerError = anyhow::Error::new(parse_error()).into();
        assert!(plain.is::<ParseIntError>());
        let with_context: HandlerError = anyhow::Error::new(Outer(io::Error::other("x")))
            .context("while charging")
            .into();
        assert!(with_context.is::<Outer>() && with_context.is::<io::Error>());
        assert_eq!(with_context.to_string(), "while charging");
    }

    #[test]
    fn strings_and_boxes_are_errors_too() {
        assert_eq!(HandlerError::from("plain").to_string(), "plain");
        assert_eq!(HandlerError::from("owned".to_owned()).to_string(), "owned");
        let boxed: BoxError = parse_error().into();
        assert!(HandlerError::from(boxed).is::<ParseIntError>());
    }

    #[test]
    fn the_kind_survives_anyhow_context_and_foreign_errors() {
        fn inner() -> anyhow::Result<()> {
            Err(HandlerError::permanent(parse_error()))?;
            Ok(())
        }
        let error: HandlerError = inner().context("outside").unwrap_err().into();
        assert_eq!(error.kind(), FailureKind::Permanent);
        assert!(error.is::<ParseIntError>());

        let wrapped = io::Error::other(HandlerError::unavailable("503").into_error());
        let error = HandlerError::from(wrapped);
        assert_eq!(error.kind(), FailureKind::Unavailable);
    }

    #[test]
    fn question_mark_converts_everything_and_keeps_a_handler_error_as_it_is() {
        fn keeps() -> Result<(), HandlerError> {
            Err(HandlerError::permanent("no"))?;
            Ok(())
        }
        fn converts() -> Result<(), HandlerError> {
            Err(parse_error())?;
            Ok(())
        }
        assert_eq!(keeps().unwrap_err().kind(), FailureKind::Permanent);
        assert_eq!(converts().unwrap_err().kind(), FailureKind::Error);
    }
}
