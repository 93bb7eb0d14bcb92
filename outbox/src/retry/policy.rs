//! The traits through which a user says how something is retried.

use std::{sync::Arc, time::Duration};

use super::{PolicyError, Retry, RetryBuilder};
use crate::handler::HandlerError;

/// Decides whether a failed attempt is made again, and after how long.
///
/// [`Retry::builder`] makes the usual ones; implement the trait for anything else:
///
/// ```
/// use std::time::Duration;
/// use outbox::{HandlerError, RetryPolicy};
///
/// #[derive(Default)]
/// struct Patient;
///
/// impl RetryPolicy for Patient {
///     fn should_retry(&self, error: &HandlerError) -> bool {
///         !error.is::<std::num::ParseIntError>()
///     }
///     fn next_delay(&self, failure_count: u32) -> Duration {
///         Duration::from_secs(60) * failure_count.min(10)
///     }
///     fn max_retries(&self) -> u32 {
///         10
///     }
/// }
/// ```
///
/// A policy is asked from many tasks at once and must be quick: it decides between two
/// attempts of a lane. [`HandlerError::permanent`] and [`HandlerError::unavailable`] are decided
/// before the policy is asked.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a retry policy",
    label = "does not implement `RetryPolicy`",
    note = "use a type that implements `outbox::RetryPolicy`, or build one: `Retry::builder().max_retries(3).fixed(Duration::from_secs(5))`"
)]
pub trait RetryPolicy: Send + Sync {
    /// Whether an attempt that failed with this error may be made again. Default: always.
    fn should_retry(&self, error: &HandlerError) -> bool {
        let _ = error;
        true
    }

    /// How long to wait after the `failure_count`-th failure; 1 is the first.
    fn next_delay(&self, failure_count: u32) -> Duration;

    /// How many times to try again: `n` retries are `n + 1` invocations, 0 means one try.
    fn max_retries(&self) -> u32;

    /// No retry starts later than this after the first failure. Default: no such limit.
    fn max_elapsed(&self) -> Option<Duration> {
        None
    }

    /// The policy in words, for the start-up report. Default: the name of the type.
    fn describe(&self) -> String {
        let max_retries = self.max_retries();
        format!(
            "{}, max {max_retries} retries",
            std::any::type_name::<Self>()
        )
    }
}

// Fails to compile if the trait stops being object-safe: the registry stores `dyn RetryPolicy`.
const _: Option<&dyn RetryPolicy> = None;

macro_rules! forward_to_inner {
    ($(<P: $bound:path $(, ?$relaxed:path)?> $pointer:ty),* $(,)?) => {$(
        impl<P: $bound $(+ ?$relaxed)?> RetryPolicy for $pointer {
            fn should_retry(&self, error: &HandlerError) -> bool {
                (**self).should_retry(error)
            }
            fn next_delay(&self, failure_count: u32) -> Duration {
                (**self).next_delay(failure_count)
            }
            fn max_retries(&self) -> u32 {
                (**self).max_retries()
            }
            fn max_elapsed(&self) -> Option<Duration> {
                (**self).max_elapsed()
            }
            fn describe(&self) -> String {
                (**self).describe()
            }
        }
    )*};
}
forward_to_inner! {
    <P: RetryPolicy, ?Sized> &P,
    <P: RetryPolicy, ?Sized> Box<P>,
    <P: RetryPolicy, ?Sized> Arc<P>,
    <P: RetryPolicy> std::sync::LazyLock<P>,
}

/// A handler that brings its own policy. Wins over `#[retryable]`, the global policy and the
/// configuration.
///
/// For a function, implement it on the type that carries the function's name; for a handler in
/// an `impl` block, on the type itself, whose fields the policy may depend on:
///
/// ```
/// # use outbox::{outbox_handler, Handler, Metadata, OutboxEvent, Retry, RetryAware};
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created")]
/// # struct OrderCreated {}
/// #[outbox_handler]
/// async fn send_receipt(event: OrderCreated) {}
///
/// impl RetryAware for send_receipt {
///     type Policy = Retry;
///     fn retry_policy(&self) -> Retry {
///         Retry::default()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not bring its own retry policy",
    note = "implement `outbox::RetryAware` for it, or use `#[retryable(..)]`"
)]
pub trait RetryAware {
    /// The type of the policy. `Arc<dyn RetryPolicy>` where it is chosen at run time.
    type Policy: RetryPolicy + 'static;

    /// The policy of this handler. Asked once, at start-up.
    fn retry_policy(&self) -> Self::Policy;
}

/// What may stand where a policy is asked for: a policy, or a [`RetryBuilder`] not built yet,
/// whose mistakes are then reported with all others at start-up.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a retry policy",
    label = "does not implement `RetryPolicy`",
    note = "use a type that implements `outbox::RetryPolicy`, or build one: `Retry::builder().max_retries(3).fixed(Duration::from_secs(5))`"
)]
pub trait IntoPolicy {
    /// The policy, or why it cannot be one.
    ///
    /// # Errors
    /// When the values of a builder contradict each other.
    fn into_policy(self) -> Result<Arc<dyn RetryPolicy>, PolicyError>;
}

#[diagnostic::do_not_recommend]
impl<P: RetryPolicy + 'static> IntoPolicy for P {
    fn into_policy(self) -> Result<Arc<dyn RetryPolicy>, PolicyError> {
        Ok(Arc::new(self))
    }
}

impl IntoPolicy for RetryBuilder {
    fn into_policy(self) -> Result<Arc<dyn RetryPolicy>, PolicyError> {
        self.build()?.into_policy()
    }
}

impl IntoPolicy for Result<Retry, PolicyError> {
    fn into_policy(self) -> Result<Arc<dyn RetryPolicy>, PolicyError> {
        self?.into_policy()
    }
}
