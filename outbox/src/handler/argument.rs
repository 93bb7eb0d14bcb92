//! [`FromContext`]: what may stand behind the event in a handler's argument list.

use std::any::{TypeId, type_name};

use super::{Context, HandlerError};
use crate::record::Metadata;

/// A type that may be an argument of a handler, behind the event.
///
/// `&Metadata` and [`State<T>`](crate::handler::State) are; implement it for arguments of your own:
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
/// An error here is a failure of the attempt, as if the handler had returned it. There is no
/// `async` form: everything an argument is made from is in memory already.
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
    /// When it cannot be made; the attempt then fails with that error.
    fn from_context(context: &'a Context) -> Result<Self, HandlerError>;

    /// Says what has to be there, so that its absence is an error at start-up instead of one at
    /// each delivery. Default: nothing.
    fn requires(requirements: &mut Requirements) {
        let _ = requirements;
    }
}

impl<'a> FromContext<'a> for &'a Metadata {
    fn from_context(context: &'a Context) -> Result<Self, HandlerError> {
        Ok(&context.metadata)
    }
}

/// In a fallback: why the handler failed for good.
impl<'a> FromContext<'a> for &'a HandlerError {
    fn from_context(context: &'a Context) -> Result<Self, HandlerError> {
        context
            .failure
            .as_ref()
            .ok_or_else(|| HandlerError::permanent("`&HandlerError` is there only in a fallback"))
    }

    fn requires(requirements: &mut Requirements) {
        requirements.failure = true;
    }
}

/// What the arguments of a handler need from the application. Collected at start-up.
#[derive(Debug, Default)]
pub struct Requirements {
    pub(crate) states: Vec<RequiredState>,
    /// An argument that only a fallback can have.
    pub(crate) failure: bool,
    /// The transaction in which the record is completed.
    pub(crate) transaction: Option<RequiredTransaction>,
}

/// The database of a `Tx` argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequiredTransaction {
    pub(crate) ty: TypeId,
    pub(crate) name: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequiredState {
    pub(crate) ty: TypeId,
    pub(crate) name: &'static str,
}

impl Requirements {
    /// A value of this type has to be given with `.state(..)`.
    pub fn state<T: Send + Sync + 'static>(&mut self) {
        self.states.push(RequiredState {
            ty: TypeId::of::<T>(),
            name: type_name::<T>(),
        });
    }
}
