//! [`RetryPolicy`], and the traits by which a handler or a builder gets one.

use std::{sync::Arc, time::Duration};

use super::{PolicyError, Retry, RetryBuilder};
use crate::{config::error_names::ErrorNames, handler::HandlerError};

/// Decides whether a failed attempt is made again, and after how long.
///
/// [`Retry::builder`] makes the usual policies. Implement the trait for any other:
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
/// Many tasks call a policy at the same time, and a lane waits for the answer, so a policy must not
/// block. For [`HandlerError::permanent`] no policy is called; for [`HandlerError::unavailable`]
/// only `next_delay` is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a retry policy",
    label = "does not implement `RetryPolicy`",
    note = "use a type that implements `outbox::RetryPolicy`, or build one: `Retry::builder().max_retries(3).fixed(Duration::from_secs(5))`"
)]
pub trait RetryPolicy: Send + Sync {
    /// Whether the handler may be tried again after this error. Default: `true`.
    fn should_retry(&self, error: &HandlerError) -> bool {
        let _ = error;
        true
    }

    /// The delay after the `failure_count`-th failure. The first failure is 1.
    fn next_delay(&self, failure_count: u32) -> Duration;

    /// The number of retries: `n` retries are `n + 1` invocations. With 0 there is one invocation.
    fn max_retries(&self) -> u32;

    /// No retry starts later than this after the first failure. Failures of every kind count, also
    /// [`unavailable`](HandlerError::unavailable), which has no other limit. A replay by a person starts
    /// the time again. Default: no limit.
    fn max_elapsed(&self) -> Option<Duration> {
        None
    }

    /// A short description for the report of handlers. Default: the name of the type.
    fn describe(&self) -> String {
        let (name, max_retries) = (std::any::type_name::<Self>(), self.max_retries());
        format!("{name}, max {max_retries} retries")
    }

    /// The ready-made policy that this is, so that a stronger place can change some of its parts.
    #[doc(hidden)]
    fn as_retry(&self) -> Option<&Retry> {
        None
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
            fn as_retry(&self) -> Option<&Retry> {
                (**self).as_retry()
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

/// A handler that has a policy of its own. It wins over `#[retryable]`, the builder's policy and
/// the configuration.
///
/// For a handler function, implement it for the type that `#[outbox_handler]` generates with the
/// function's name. For handlers in an `impl` block, implement it for the type of that block; the
/// policy may then depend on its fields.
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
    /// The type of the policy. Use `Arc<dyn RetryPolicy>` to choose one at run time.
    type Policy: RetryPolicy + 'static;

    /// The policy of this handler. The registry calls this once, at start-up.
    fn retry_policy(&self) -> Self::Policy;
}

/// A value that the methods of the builders take as a policy: a [`RetryPolicy`], or a
/// [`RetryBuilder`], whose mistakes are reported with all others at start-up.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a retry policy",
    label = "does not implement `RetryPolicy`",
    note = "use a type that implements `outbox::RetryPolicy`, or build one: `Retry::builder().max_retries(3).fixed(Duration::from_secs(5))`"
)]
pub trait IntoPolicy {
    /// Converts the value into a policy.
    ///
    /// # Errors
    /// The values of a builder are invalid together; see [`RetryBuilder::build`].
    fn into_policy(self) -> Result<Arc<dyn RetryPolicy>, PolicyError>;

    /// The value as a registry keeps it until it knows all names of error types.
    #[doc(hidden)]
    fn unbuilt(self) -> UnbuiltPolicy
    where
        Self: Sized,
    {
        UnbuiltPolicy(Unbuilt::Policy(self.into_policy()))
    }
}

/// A policy, or a builder whose names of error types may be registered later.
#[derive(Debug)]
pub struct UnbuiltPolicy(Unbuilt);

enum Unbuilt {
    Policy(Result<Arc<dyn RetryPolicy>, PolicyError>),
    Builder(Box<RetryBuilder>),
}

impl std::fmt::Debug for Unbuilt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unbuilt")
    }
}

impl UnbuiltPolicy {
    pub(crate) fn build(self, names: &ErrorNames) -> Result<Arc<dyn RetryPolicy>, PolicyError> {
        match self.0 {
            Unbuilt::Policy(policy) => policy,
            Unbuilt::Builder(builder) => builder.resolved_by(names).into_policy(),
        }
    }
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

    fn unbuilt(self) -> UnbuiltPolicy {
        UnbuiltPolicy(Unbuilt::Builder(Box::new(self)))
    }
}

impl IntoPolicy for Result<Retry, PolicyError> {
    fn into_policy(self) -> Result<Arc<dyn RetryPolicy>, PolicyError> {
        self?.into_policy()
    }
}
