//! [`Fallback`]: a function that `#[outbox_handler(fallback = path)]` may name.

use super::{Context, FromContext, IntoOutcome, Outcome, Requirements};

/// A function that runs after a handler has failed permanently.
///
/// Its first argument is the event by value. Up to four arguments follow: those that a handler may
/// take, and `&HandlerError`, the handler's failure. If the fallback succeeds, the handler is done
/// with the record. If it fails, the record has failed permanently; the fallback itself is not retried.
///
/// The worker that made the last attempt runs the fallback at once, and writes one result for both. If that
/// result is not written, because the process died or lost the partition, handler and fallback run again. The
/// [guide](crate::guide::handlers#after-the-last-attempt) lists when a fallback runs, runs again, and does not
/// run.
///
/// ```
/// # use outbox::{outbox_handler, HandlerError, OutboxEvent};
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created")]
/// # struct OrderCreated { order_id: i64 }
/// #[outbox_handler(fallback = refund)]
/// async fn charge_card(event: OrderCreated) -> Result<(), String> {
///     Err("declined".to_owned())
/// }
///
/// async fn refund(event: OrderCreated, error: &HandlerError) {
///     println!("order {} was not charged: {error}", event.order_id);
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the fallback of this handler",
    label = "not a fallback for `{E}`",
    note = "a fallback is an `async fn` whose first argument is the handler's event, `{E}`, by value, followed by up to four of `&HandlerError`, `&Metadata`, `State<T>` and your own arguments; it returns `()` or `Result<(), E>`"
)]
pub trait Fallback<'a, E, Arguments> {
    #[doc(hidden)]
    fn call(self, event: E, context: &'a Context) -> impl Future<Output = Outcome> + Send;

    #[doc(hidden)]
    fn requires(&self, requirements: &mut Requirements);
}

macro_rules! fallback_of {
    ($($argument:ident: $Argument:ident),*) => {
        #[diagnostic::do_not_recommend]
        impl<'a, E, F, Fut, $($Argument),*> Fallback<'a, E, ($($Argument,)*)> for F
        where
            E: Send,
            F: Fn(E $(, $Argument)*) -> Fut + Send,
            Fut: Future<Output: IntoOutcome> + Send,
            $($Argument: FromContext<'a> + Send,)*
        {
            async fn call(self, event: E, context: &'a Context) -> Outcome {
                let _ = context;
                $(let $argument = crate::__attempt!($Argument::from_context(context));)*
                self(event $(, $argument)*).await.into_outcome()
            }

            fn requires(&self, requirements: &mut Requirements) {
                let _ = &requirements;
                $($Argument::requires(requirements);)*
            }
        }
    };
}
fallback_of!();
fallback_of!(a: A);
fallback_of!(a: A, b: B);
fallback_of!(a: A, b: B, c: C);
fallback_of!(a: A, b: B, c: C, d: D);
