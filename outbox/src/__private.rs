//! Items that only generated code and the tests of this library use. There is no promise of
//! stability: the macros have the same version as this crate, and programs use `testing::Kit`.

use std::{marker::PhantomData, sync::Arc};

#[cfg(feature = "inventory")]
pub use inventory;

#[cfg(feature = "inventory")]
pub use crate::registry::linked::{NamedErrorType, Submission};
pub use crate::{
    handler::{
        BoxError, Fallback, FromContext, IntoOutcome, Outcome, ReceivedEvent, Validate,
        received::ChosenByName,
    },
    record::{EventData, EventKey, attempt::Attempt},
    registry::registration::{
        AttributePolicy, EventMatch, FallbackFn, Instances, Invocation, Location, PermanentFailure,
        Registered, Registration, TraitPolicy, TypedEvent,
    },
    retry::{
        Jitter,
        decide::decide,
        decision::{Completion, Decision, FailedBecause, NoHandler},
        parts::RetryParts,
        resolve::{Resolved, resolve},
    },
};
use crate::{
    handler::{Context, HandlerError},
    record::Metadata,
    retry::{IntoPolicy, PolicyError, RetryAware, RetryPolicy},
};

/// `u32`, by a path that a user's own type named `u32` cannot shadow.
pub type Version = u32;

/// Replaces the crate `inventory` without that feature. The program then registers everything itself.
#[cfg(not(feature = "inventory"))]
pub mod inventory {
    #[doc(hidden)]
    #[macro_export]
    macro_rules! __ignore {
        ($($tokens:tt)*) => {};
    }
    pub use __ignore as submit;
}

/// Registers a handler when it is linked.
#[doc(hidden)]
#[macro_export]
macro_rules! __submit {
    ($registered:ty, $of:ty) => {
        $crate::__private::inventory::submit! {
            $crate::__private::Submission(
                <$registered as $crate::__private::Registered<$of>>::REGISTRATIONS
            )
        }
    };
}

/// Registers the name of an error type when it is linked.
#[doc(hidden)]
#[macro_export]
macro_rules! __submit_error_name {
    ($error:ty, $name:literal) => {
        $crate::__private::inventory::submit! {
            $crate::__private::NamedErrorType::new::<$error>($name)
        }
    };
}

pub use crate::{__submit as submit, __submit_error_name as submit_error_name};

/// Evaluates to the value, or returns the error from the invocation.
#[doc(hidden)]
#[macro_export]
macro_rules! __attempt {
    ($made:expr) => {
        match $made {
            ::core::result::Result::Ok(value) => value,
            ::core::result::Result::Err(error) => return $crate::__private::Outcome::Failed(error),
        }
    };
}

pub use crate::__attempt as attempt;

/// Compiles only for event types for which `events = ".."` is allowed.
pub const fn chosen_by_name<E: ChosenByName>() {}

/// The empty struct that has the name of a handler function.
pub trait Marker {
    const MARKER: Self;
}

/// Finds out in a constant whether a type is [`RetryAware`]. The compiler prefers the inherent
/// constants where their bounds hold, and takes those of [`NotRetryAware`] for all other types.
#[derive(Debug)]
pub struct Probe<T>(PhantomData<T>);

impl<T: RetryAware + Marker> Probe<T> {
    pub const OF_MARKER: Option<TraitPolicy> =
        Some(|_: &Instances<'_>| Some(Arc::new(T::MARKER.retry_policy())));
}

impl<T: RetryAware + 'static> Probe<T> {
    pub const OF_INSTANCE: Option<TraitPolicy> = Some(|instances: &Instances<'_>| {
        let policy = instances.get::<T>()?.retry_policy();
        Some(Arc::new(policy))
    });
}

/// The constants of a [`Probe`] for a type that is not [`RetryAware`].
pub trait NotRetryAware {
    const OF_MARKER: Option<TraitPolicy> = None;
    const OF_INSTANCE: Option<TraitPolicy> = None;
}

impl<T> NotRetryAware for Probe<T> {}

/// A type that `#[retryable(policy = SomeType)]` may name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be named as a retry policy",
    label = "needs `RetryPolicy` and `Default`",
    note = "a type named in `#[retryable(policy = ..)]` is made by its `Default`: add `#[derive(Default)]` and `impl outbox::RetryPolicy for {Self}`, or write a value instead, such as `policy = {Self}::new(..)`"
)]
pub trait DefaultPolicy: Default + RetryPolicy + 'static {}

#[diagnostic::do_not_recommend]
impl<P: Default + RetryPolicy + 'static> DefaultPolicy for P {}

pub fn policy_by_default<P: DefaultPolicy>() -> Result<Arc<dyn RetryPolicy>, PolicyError> {
    P::default().into_policy()
}

pub fn policy_by_value(policy: impl IntoPolicy) -> Result<Arc<dyn RetryPolicy>, PolicyError> {
    policy.into_policy()
}

/// For a constant or a static: the policy cannot be moved out of it.
pub fn policy_by_clone<P: IntoPolicy + Clone>(
    policy: &P,
) -> Result<Arc<dyn RetryPolicy>, PolicyError> {
    policy.clone().into_policy()
}

/// Calls a `when` guard. The bound checks its signature.
pub fn guard<E>(guard: impl Fn(&E, &Metadata) -> bool, event: &E, context: &Context) -> bool {
    guard(event, context.metadata())
}

/// Calls an event's `validate`. The bound checks its signature.
pub fn validated<E, R: std::error::Error + Send + Sync + 'static>(
    event: &E,
    validate: impl Fn(&E) -> Result<(), R>,
) -> Result<(), BoxError> {
    validate(event).map_err(Into::into)
}

/// The `&self` of a handler that is a method.
pub fn instance<T: Send + Sync + 'static>(context: &Context) -> Result<&T, HandlerError> {
    context.state::<T>()
}
