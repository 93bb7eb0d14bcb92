//! Arguments, results and errors of handlers; see the [guide](crate::guide::handlers).
//!
//! | type | purpose |
//! |---|---|
//! | [`Handler`] | a handler as a type, instead of a function |
//! | [`ReceivedEvent`] | the first argument of a handler: the event |
//! | [`FromContext`], [`Context`] | the other arguments, and the values from which they are made |
//! | [`State`] | an argument with a value of the application |
//! | [`Requirements`] | what an argument needs at start-up |
//! | [`IntoOutcome`], [`Outcome`] | what a handler may return, and the result of one invocation |
//! | [`HandlerError`], [`FailureKind`] | why an attempt failed |
//! | [`TimedOut`], [`Panicked`] | the errors of a handler that did not return |
//! | [`Fallback`] | a function that runs after the handler has failed permanently |
//! | [`Validate`] | a function that checks the event for one handler |

mod argument;
mod context;
mod error;
mod fallback;
pub(crate) mod invoke;
mod outcome;
pub(crate) mod received;
mod state;
mod transaction;
mod validate;

pub use argument::{FromContext, Requirements};
pub use context::Context;
pub use error::{BoxError, FailureKind, HandlerError, Panicked, TimedOut};
pub use fallback::Fallback;
pub use outcome::{IntoOutcome, Outcome};
pub use received::ReceivedEvent;
pub use state::State;
pub(crate) use state::States;
pub(crate) use transaction::OpenTransaction;
pub use validate::Validate;

use crate::record::Metadata;

/// A handler as a type. Its fields hold what the handler needs.
///
/// The program gives the instance with `.state(..)`. Without an instance, start-up fails with
/// [`Problem::MissingState`](crate::registry::Problem::MissingState).
///
/// ```
/// use outbox::{outbox_handler, Handler, Metadata, OutboxEvent, Registry};
///
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created")]
/// # struct OrderCreated { total_cents: i64 }
/// struct Payments {
///     limit_cents: i64,
/// }
///
/// #[outbox_handler]
/// impl Handler<OrderCreated> for Payments {
///     async fn handle(&self, event: OrderCreated, _meta: &Metadata) -> Result<(), String> {
///         if event.total_cents > self.limit_cents {
///             return Err("above the limit".to_owned());
///         }
///         Ok(())
///     }
/// }
///
/// Registry::builder()
///     .handler_for::<Payments, OrderCreated>()
///     .state(Payments { limit_cents: 100_00 })
///     .build()?;
/// # Ok::<(), outbox::registry::RegistryError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle `{E}`",
    note = "write `#[outbox_handler] impl Handler<{E}> for {Self} {{ async fn handle(&self, event: {E}, meta: &Metadata) -> Result<(), E> {{ .. }} }}`"
)]
pub trait Handler<E>: Send + Sync + 'static {
    /// Handles one event. It may be called again with the same event; `meta.event_id()` is then the
    /// same.
    fn handle(&self, event: E, meta: &Metadata) -> impl Future<Output = impl IntoOutcome> + Send;
}
