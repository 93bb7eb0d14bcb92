//! The attribute macros of the [`outbox`](https://docs.rs/outbox) crate. Depend on that one; it
//! pins this crate to its own version.
//!
//! Every macro is a pipeline: *parse* (tokens to syntax, no judgement) → *validate* (syntax to a
//! model, collecting every mistake) → *expand* (model to tokens, cannot fail). Only this file
//! touches `proc_macro`; everything else is `proc_macro2` and tested as plain functions.

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
/// On an `async fn`, on `impl Handler<E> for T`, or on an inherent `impl` block whose handler
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
/// The first argument (behind `&self`) is the event, by value: a type that derives `OutboxEvent`,
/// or `AnyEvent`. Every further one is `&Metadata`, `State<T>` or a type that implements
/// `FromContext`. The function itself stays as it is and can be called like any other.
///
/// | argument | |
/// |---|---|
/// | `id = "charge-card"` | the stored name; without it `module::path::charge_card` |
/// | `aliases = ["charge"]` | older ids, for records that were stored under them |
/// | `timeout = "30s"` | one invocation fails when it takes longer |
/// | `concurrency = 8` | at most that many invocations at once in this process |
/// | `when = path` | `fn(&E, &Metadata) -> bool`: events it says `false` to are done without the handler |
/// | `fallback = path` | an `async fn` that runs once when the handler has failed for good |
/// | `on_permanent_failure = block` or `skip` | whether later records of the key wait behind one that failed for good; `block` unless given |
/// | `events = "order.*"` | for `AnyEvent`: which names; one or a list |
/// | `marker = Name` | another name for the type that stands for the function, if its own is taken |
/// | `crate = path` | where `outbox` is, if the dependency was renamed |
///
/// A type with the function's name stands for the handler: `impl RetryAware for charge_card`,
/// `Registry::builder().handler::<charge_card>()`. For an `impl` block that is the type itself,
/// so a second marked inherent block of one type needs a `marker`.
///
/// An associated function without `self` cannot be a handler; move it out of the `impl`.
#[proc_macro_attribute]
pub fn outbox_handler(arguments: TokenStream, item: TokenStream) -> TokenStream {
    handler::outbox_handler(&arguments.into(), item.into()).into()
}

/// Says how a handler is retried. Above or below `#[outbox_handler]`, which it needs.
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
/// | argument | |
/// |---|---|
/// | `fixed("5s")` | the same delay each time; this one unless given |
/// | `linear(initial = "2s", increment = "2s", max = "60s")` | |
/// | `exponential(initial = "1s", multiplier = 2.0, max = "60s")` | |
/// | `max_retries = 3` | tries again that often; 3 unless given |
/// | `max_attempts = 4` | the same, counted with the first try |
/// | `max_elapsed = "1h"` | no retry starts later than this after the first failure |
/// | `jitter = "100ms"`, `0.5`, `full`, `equal`, `decorrelated` | spreads the delays |
/// | `retry_on(A, B)` | only these errors, or what they caused |
/// | `no_retry_on(A, B)` | never these |
/// | `retry_if = path` | `fn(&HandlerError) -> bool` |
#[proc_macro_attribute]
pub fn retryable(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let written_as = proc_macro::Span::call_site().source_text();
    retryable::retryable(&arguments.into(), &item.into(), written_as.as_deref()).into()
}

/// Makes a type an outbox event; see the trait of the same name.
#[proc_macro_derive(OutboxEvent, attributes(outbox_event))]
pub fn derive_outbox_event(item: TokenStream) -> TokenStream {
    event::derive(item.into()).into()
}

/// Gives an error type the name by which a configuration includes or excludes it.
///
/// ```ignore
/// #[outbox::error_name("billing.declined")]
/// #[derive(Debug, thiserror::Error)]
/// #[error("declined")]
/// struct Declined;
/// ```
///
/// Needs the `inventory` feature; without it, use `.error_name::<Declined>("billing.declined")`.
/// `crate = path` behind the name says where `outbox` is, if the dependency was renamed.
#[proc_macro_attribute]
pub fn error_name(arguments: TokenStream, item: TokenStream) -> TokenStream {
    error_name::error_name(arguments.into(), &item.into()).into()
}
