//! [`FromContext`]: the arguments of a handler after the event.

use std::any::{TypeId, type_name};

use super::{Context, HandlerError};
use crate::record::Metadata;

/// A type that may be an argument of a handler, after the event.
///
/// `&Metadata`, [`State<T>`](crate::handler::State) and [`Tx`](crate::Tx) implement it. Implement it
/// for arguments of your own:
///
/// ```
/// use outbox::{Context, FromContext, HandlerError, OutboxEvent, handler::Requirements, outbox_handler};
///
/// struct Tenant(String);
///
/// impl<'a> FromContext<'a> for Tenant {
///     fn from_context(context: &'a Context) -> Result<Self, HandlerError> {
///         let tenant = context.metadata().headers().get("tenant");
///         tenant.cloned().map(Self).ok_or_else(|| HandlerError::permanent("no tenant"))
///     }
/// }
///
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created")]
/// # struct OrderCreated {}
/// #[outbox_handler]
/// async fn charge_card(event: OrderCreated, tenant: Tenant) {}
/// ```
///
/// An error fails the attempt, as if the handler had returned it. The function is not `async`,
/// because everything from which an argument is made is in memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an outbox handler",
    label = "not a handler argument",
    note = "the first argument is the event; each further one is `&Metadata`, `State<T>` (with `T: Clone + Send + Sync + 'static`) or a type of yours that implements `outbox::FromContext`",
    note = "to use a value of your application, take it as `State<{Self}>` and give it with `.state(..)`"
)]
pub trait FromContext<'a>: Sized {
    /// Makes the argument.
    ///
    /// # Errors
    /// The argument cannot be made. The attempt fails with this error.
    fn from_context(context: &'a Context) -> Result<Self, HandlerError>;

    /// Names what the argument needs. If it is missing, start-up fails instead of every attempt.
    /// Default: nothing.
    fn requires(requirements: &mut Requirements) {
        let _ = requirements;
    }
}

impl<'a> FromContext<'a> for &'a Metadata {
    fn from_context(context: &'a Context) -> Result<Self, HandlerError> {
        Ok(&context.metadata)
    }
}

/// Only for a fallback: why the handler failed permanently.
impl<'a> FromContext<'a> for &'a HandlerError {
    fn from_context(context: &'a Context) -> Result<Self, HandlerError> {
        context
            .failure
            .as_ref()
            .ok_or_else(|| HandlerError::permanent("only a fallback can take `&HandlerError`"))
    }

    fn requires(requirements: &mut Requirements) {
        requirements.needs_failure = true;
    }
}

/// The values that the arguments of a handler need. The registry collects them at start-up.
#[derive(Debug, Default)]
pub struct Requirements {
    pub(crate) states: Vec<RequiredType>,
    /// An argument is `&HandlerError`, which only a fallback can take.
    pub(crate) needs_failure: bool,
    /// An argument is a `Tx` of this database type.
    pub(crate) transaction: Option<RequiredType>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequiredType {
    pub(crate) ty: TypeId,
    pub(crate) name: &'static str,
}

impl RequiredType {
    pub(super) fn of<T: 'static>() -> Self {
        let (ty, name) = (TypeId::of::<T>(), type_name::<T>());
        Self { ty, name }
    }
}

impl Requirements {
    /// The program has to give a value of type `T` with `.state(..)`.
    pub fn state<T: Send + Sync + 'static>(&mut self) {
        self.states.push(RequiredType::of::<T>());
    }
}
