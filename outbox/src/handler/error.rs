//! [`HandlerError`]: a handler's failure, and what it means for the next attempt.

use std::{any::Any, error::Error, fmt, io, iter, time::Duration};

/// A boxed error of any type.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// Why an attempt failed: the handler's own error, and the kind of the failure.
///
/// `?` converts every error type, `anyhow::Error`, boxed errors and strings into it. A handler
/// needs to name it only to choose the kind:
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
/// It is not a [`std::error::Error`] itself, because then it could not be converted from every
/// error. [`into_error`](Self::into_error) makes one, and so does `?` in a function that returns
/// `anyhow::Result`. The kind is kept, however deep in a chain of errors it ends up.
#[derive(Debug)]
pub struct HandlerError {
    kind: FailureKind,
    cause: BoxError,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The handler returned an ordinary error.
    Error,
    /// [`HandlerError::permanent`]: the record is never retried.
    Permanent,
    /// [`HandlerError::retry_after`]: the record is retried after this delay.
    RetryAfter(Duration),
    /// [`HandlerError::unavailable`]: the record is retried, and no retry is used up. Only `max_elapsed`
    /// ends it.
    Unavailable,
    /// The handler ran longer than its `timeout`.
    TimedOut,
    /// The handler panicked.
    Panicked,
    /// The payload could not be decoded as the handler's event.
    Undecodable,
    /// The `validate` of the event or of the handler refused the decoded payload.
    Invalid,
}

impl HandlerError {
    /// The handler can never handle this event. The policy is not asked, and there is no retry.
    pub fn permanent(cause: impl Into<BoxError>) -> Self {
        Self::of_kind(FailureKind::Permanent, cause)
    }

    /// The next attempt comes after `delay` instead of the policy's delay. It counts as a retry.
    pub fn retry_after(delay: Duration, cause: impl Into<BoxError>) -> Self {
        Self::of_kind(FailureKind::RetryAfter(delay), cause)
    }

    /// A service that the handler needs is down, and the event is not the cause. The record is
    /// retried with the policy's delays until the service is back. `max_retries` does not apply. The
    /// policy's [`max_elapsed`](crate::RetryPolicy::max_elapsed) does, if it has one: when the next retry
    /// would start too late, the record fails permanently. Without `max_elapsed` there is no limit.
    pub fn unavailable(cause: impl Into<BoxError>) -> Self {
        Self::of_kind(FailureKind::Unavailable, cause)
    }

    pub(crate) fn of_kind(kind: FailureKind, cause: impl Into<BoxError>) -> Self {
        let cause = cause.into();
        Self { kind, cause }
    }

    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// The handler's own error.
    #[must_use]
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.cause
    }

    /// The handler's own error, then its cause, and so on. An error inside an [`io::Error`] is part
    /// of the chain too.
    pub fn chain(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let first: &(dyn Error + 'static) = &*self.cause;
        iter::successors(Some(first), |&error| {
            wrapped_in(error).or_else(|| error.source())
        })
    }

    /// Whether the chain contains an `E`.
    #[must_use]
    pub fn is<E: Error + 'static>(&self) -> bool {
        self.find::<E>().is_some()
    }

    /// The first `E` in the chain.
    #[must_use]
    pub fn find<E: Error + 'static>(&self) -> Option<&E> {
        self.chain().find_map(<dyn Error>::downcast_ref)
    }

    /// Converts into a [`std::error::Error`], for functions that return one. When the handler
    /// returns that error, alone or as the source of another one, the kind is found again.
    #[must_use]
    pub fn into_error(self) -> impl Error + Send + Sync + 'static {
        Carried(self)
    }

    /// The same failure, with the text of a second failure added: that of the handler's `followup`.
    pub(crate) fn followed_by(self, followup: &'static str, failure: &Self) -> Self {
        let twice = FailedTwice {
            source: self.cause,
            followup,
            failure: format!("{failure:#}"),
        };
        Self::of_kind(self.kind, twice)
    }
}

/// The handler failed, and the code that ran after it failed too.
#[derive(Debug, thiserror::Error)]
#[error("the handler failed, and then its {followup} ({failure})")]
struct FailedTwice {
    /// The handler's error.
    source: BoxError,
    /// The user code that failed after it.
    followup: &'static str,
    /// The text of the second failure with its causes.
    failure: String,
}

/// The error that `error` wraps without a text of its own: both show the same text.
fn wrapped_in<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    if let Some(carried) = error.downcast_ref::<Carried>() {
        return Some(&*carried.0.cause);
    }
    // `io::Error::source` skips the error that it wraps.
    let wrapped = error.downcast_ref::<io::Error>()?.get_ref()?;
    Some(wrapped)
}

impl<E: Into<BoxError> + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let this = Self::of_kind(FailureKind::Error, boxed(error));
        let kind = this.find().map_or(this.kind, |Carried(inner)| inner.kind);
        Self { kind, ..this }
    }
}

/// Boxes an error. `anyhow`'s own conversion hides the type of the error inside, and then no rule
/// for error types would find it. This function keeps the type.
fn boxed<E: Into<BoxError> + 'static>(error: E) -> BoxError {
    let mut error = Some(error);
    let any: &mut dyn Any = &mut error;
    let anyhow = any.downcast_mut::<Option<anyhow::Error>>();
    if let Some(anyhow) = anyhow.and_then(Option::take) {
        return anyhow.reallocate_into_boxed_dyn_error_without_backtrace();
    }
    // `error` is `Some` here: only the branch above takes it.
    error.map_or_else(|| "unknown error".into(), Into::into)
}

impl From<HandlerError> for anyhow::Error {
    fn from(error: HandlerError) -> Self {
        Self::new(Carried(error))
    }
}

impl fmt::Display for HandlerError {
    /// The handler's error. `{:#}` adds its causes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        if f.alternate() {
            for (error, cause) in self.chain().zip(self.chain().skip(1)) {
                // A wrapper has shown the text of this cause already.
                if wrapped_in(error).is_none() {
                    write!(f, ": {cause}")?;
                }
            }
        }
        Ok(())
    }
}

/// A [`HandlerError`] as a [`std::error::Error`]. It shows the text of the cause, so `source` is
/// the cause's source: otherwise that text would be printed twice.
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
        self.0.cause.source()
    }
}

/// The handler ran longer than its `timeout`. The chain of such a failure contains it, so that
/// [`retry_on`](crate::retry::RetryBuilder::retry_on) can name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the handler did not finish within {}", humantime::format_duration(*.limit))]
#[non_exhaustive]
pub struct TimedOut {
    /// The handler's `timeout`.
    pub limit: Duration,
}

/// The handler, its fallback or its policy panicked. The chain of such a failure contains it, so
/// that [`retry_on`](crate::retry::RetryBuilder::retry_on) can name it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("panicked: {message}")]
#[non_exhaustive]
pub struct Panicked {
    /// The panic message.
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
            .unwrap_or_else(|| "a value that is not text".to_owned());
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
        assert_eq!(format!("{error:#}"), "outer: invalid digit found in string");
    }

    #[test]
    fn no_text_is_printed_twice() {
        let carried = || HandlerError::permanent(Outer(io::Error::other("closed")));
        let text = "outer: closed";
        let anyhow = anyhow::Error::from(carried());
        assert_eq!(format!("{anyhow:#}"), text);
        assert_eq!(format!("{:#}", HandlerError::from(anyhow)), text);
        let outside = anyhow::Error::from(carried()).context("outside");
        let outside = HandlerError::from(outside);
        assert_eq!(format!("{outside:#}"), "outside: outer: closed");
        assert!(outside.is::<Outer>());
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
