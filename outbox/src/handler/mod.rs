//! What a handler takes and returns; see the [guide](crate::guide::handlers).
//!
//! The first argument is a [`ReceivedEvent`]. The others implement [`FromContext`] and are made
//! from one [`Context`]. The result becomes an [`Outcome`], with a [`HandlerError`] if the attempt
//! failed. A [`Fallback`] runs after the handler has failed for good.

mod argument;
mod context;
mod error;
mod fallback;
pub(crate) mod invoke;
mod outcome;
pub(crate) mod received;
mod state;
mod transaction;

pub use argument::{FromContext, Requirements};
pub use context::Context;
pub use error::{BoxError, FailureKind, HandlerError, Panicked, TimedOut};
pub use fallback::Fallback;
pub use outcome::{IntoOutcome, Outcome};
pub use received::ReceivedEvent;
pub use state::State;
pub(crate) use state::States;
pub(crate) use transaction::Slot;

use crate::record::Metadata;

/// A handler as a type: its fields are what it works with.
///
/// The instance is the one given with `.state(..)`; if there is none, start-up fails and says so.
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
    /// Handles one event. May be called again with the same one: `meta.event_id()` stays the same.
    fn handle(&self, event: E, meta: &Metadata) -> impl Future<Output = impl IntoOutcome> + Send;
}
