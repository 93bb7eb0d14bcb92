//! [`Validate`]: a function that `#[outbox_handler(validate = path)]` may name.

use std::error::Error;

use super::{Context, FailureKind, HandlerError};

/// A function that checks the event for one handler, in addition to the event's own `validate`:
/// `fn(&E) -> Result<(), impl Error>`.
///
/// An event that it refuses fails permanently for this handler, with the kind
/// [`Invalid`](FailureKind::Invalid). The policy is not asked. Neither the guard, the handler nor its
/// fallback is called.
///
/// ```
/// # use outbox::{outbox_handler, OutboxEvent};
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created")]
/// # struct OrderCreated { total_cents: i64 }
/// #[outbox_handler(validate = has_an_amount)]
/// async fn charge_card(event: OrderCreated) {}
///
/// fn has_an_amount(event: &OrderCreated) -> Result<(), std::io::Error> {
///     if event.total_cents > 0 {
///         return Ok(());
///     }
///     Err(std::io::Error::other("nothing to charge"))
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the `validate` of this handler",
    label = "not a check of `{E}`",
    note = "`validate` is a `fn(&{E}) -> Result<(), E>` that is not `async`; `E` may be any `std::error::Error + Send + Sync + 'static`"
)]
pub trait Validate<E> {
    #[doc(hidden)]
    fn check(self, event: &E, context: &Context) -> Result<(), HandlerError>;
}

#[diagnostic::do_not_recommend]
impl<E, F, R> Validate<E> for F
where
    F: Fn(&E) -> Result<(), R>,
    R: Error + Send + Sync + 'static,
{
    fn check(self, event: &E, context: &Context) -> Result<(), HandlerError> {
        self(event).map_err(|source| {
            let handler = context.metadata.handler;
            let refused = RefusedByHandler { handler, source };
            HandlerError::of_kind(FailureKind::Invalid, refused)
        })
    }
}

/// The `validate` of a handler returned an error.
#[derive(Debug, thiserror::Error)]
#[error("the `validate` of handler `{handler}` refused the event")]
struct RefusedByHandler<R: Error + 'static> {
    handler: &'static str,
    source: R,
}
