//! The attribute macros of the [`outbox`](https://docs.rs/outbox) crate. Depend on that one; it
//! pins this crate to its own version.
//!
//! Every macro has three stages: *parse* (tokens to syntax, accepts mistakes) → *validate* (syntax to a
//! model, collects every mistake) → *expand* (model to tokens, cannot fail). Only this file uses
//! `proc_macro`. Everything else uses `proc_macro2`, so tests call it as plain functions.

mod arguments;
mod duration;
mod error_name;
mod errors;
mod event;
mod handler;
mod literals;
mod paths;
mod retryable;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Marks a handler of outbox events.
///
/// Put it on an `async fn`, on `impl Handler<E> for T`, or on an inherent `impl` block whose handler
/// methods are marked as well:
///
/// ```ignore
/// #[outbox_handler(id = "charge-card", timeout = "30s")]
/// async fn charge_card(event: OrderCreated, meta: &Metadata, State(bank): State<Bank>) -> Result<(), BankError> { .. }
///
/// #[outbox_handler]
/// impl Payments {
///     #[outbox_handler]
///     #[retryable(max_retries = 10)]
///     async fn on_payment(&self, event: PaymentReceived) -> anyhow::Result<()> { .. }
/// }
/// ```
///
/// The first argument (after `&self`) is the event, by value: a type that derives `OutboxEvent`,
/// or `AnyEvent`. Every further argument is `&Metadata`, `State<T>`, `Tx` or a type of yours that
/// implements `FromContext`. The attribute does not change the function, which can still be called.
///
/// | argument | meaning |
/// |---|---|
/// | `id = "charge-card"` | the id in the database; default: `module::path::charge_card` |
/// | `aliases = ["charge"]` | older ids of the handler; rows with these ids belong to it |
/// | `timeout = "30s"` | the time limit of one invocation; after it, the attempt fails |
/// | `concurrency = 8` | how many invocations may run at the same time in this process |
/// | `when = path` | a guard, `fn(&E, &Metadata) -> bool`, called after `validate`; if it returns `false`, the handler does not run and is done with the record |
/// | `validate = path` | `fn(&E) -> Result<(), impl Error>`, in addition to the event's own `validate`; an event that it refuses fails permanently for this handler, and neither guard, handler nor fallback runs |
/// | `fallback = path` | an `async fn` that runs after each permanent failure of the handler, unless the payload is not a valid event; it may run again, as the handler may |
/// | `on_permanent_failure = block` or `skip` | whether later records of the lane wait after a permanent failure; default: `block` |
/// | `events = "order.*"` | for `AnyEvent`: a pattern of event names, or a list of patterns |
/// | `marker = Name` | another name for the generated type, if the function's name is taken |
/// | `crate = path` | the path of `outbox`, if the dependency was renamed |
///
/// The attribute generates a type with the function's name. The type stands for the handler:
/// `impl RetryAware for charge_card`, `Registry::builder().handler::<charge_card>()`. For an `impl`
/// block, the type of the block stands for its handlers, so a second marked inherent block of the
/// same type needs a `marker`.
///
/// An associated function without `self` cannot be a handler. Move it out of the `impl` block.
#[proc_macro_attribute]
pub fn outbox_handler(arguments: TokenStream, item: TokenStream) -> TokenStream {
    handler::outbox_handler(&arguments.into(), item.into()).into()
}

/// Sets the retry policy of a handler. Put it above or below `#[outbox_handler]`, which it needs.
///
/// ```ignore
/// #[retryable(policy = Aggressive)]              // a type that is `RetryPolicy + Default`
/// #[retryable(policy = BANK_POLICY)]             // a constant or a static
/// #[retryable(policy = Retry::builder().max_retries(9))] // any expression
/// #[retryable(policy = "gentle")]                // `.named_policy` or `retry.policies.gentle`
/// #[retryable(
///     exponential(initial = "500ms", multiplier = 2.0, max = "10s"),
///     max_retries = 3,
///     jitter = "100ms",
///     retry_on(io::Error),
///     no_retry_on(ValidationError),
/// )]
/// ```
///
/// | argument | meaning |
/// |---|---|
/// | `fixed("5s")` | the same delay after every failure |
/// | `linear(initial = "2s", increment = "2s", max = "60s")` | 2 s, 4 s, 6 s, and so on, at most 60 s |
/// | `exponential(initial = "1s", multiplier = 2.0, max = "60s")` | 1 s, 2 s, 4 s, and so on, at most 60 s |
/// | `max_retries = 3` | the number of retries |
/// | `max_attempts = 4` | the number of invocations: the first one and the retries |
/// | `max_elapsed = "1h"` | no retry starts later than this after the first failure of any kind |
/// | `jitter = "100ms"`, `0.5`, `full`, `equal`, `decorrelated` | spreads the delays at random |
/// | `retry_on(A, B)` | retries only these error types, and errors caused by them |
/// | `no_retry_on(A, B)` | never retries these error types, nor errors caused by them |
/// | `retry_if = path` | retries errors for which this `fn(&HandlerError) -> bool` returns `true`, and those of `retry_on` |
///
/// The attribute has no defaults. A part that it does not name comes from the next weaker place: the
/// builder's policy, else the configuration's, else the library's default, which the module
/// `outbox::retry::defaults` has. All rules for errors together are one part, as is the back-off.
#[proc_macro_attribute]
pub fn retryable(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let written_as = proc_macro::Span::call_site().source_text();
    retryable::retryable(&arguments.into(), &item.into(), written_as.as_deref()).into()
}

/// Implements the trait `OutboxEvent`, which documents the attribute's arguments.
#[proc_macro_derive(OutboxEvent, attributes(outbox_event))]
pub fn derive_outbox_event(item: TokenStream) -> TokenStream {
    event::derive(item.into()).into()
}

/// Gives an error type a name, so that the configuration can include or exclude it.
///
/// ```ignore
/// #[outbox::error_name("billing.declined")]
/// #[derive(Debug, thiserror::Error)]
/// #[error("declined")]
/// struct Declined;
/// ```
///
/// It needs the `inventory` feature. Without the feature, use
/// `.error_name::<Declined>("billing.declined")`. If the dependency was renamed, add `crate = path`
/// after the name.
#[proc_macro_attribute]
pub fn error_name(arguments: TokenStream, item: TokenStream) -> TokenStream {
    error_name::error_name(arguments.into(), &item.into()).into()
}
