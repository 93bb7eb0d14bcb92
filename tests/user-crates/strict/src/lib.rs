//! A user's crate under the strictest lints, with names in scope that shadow names that generated
//! code could use.
#![forbid(unsafe_code)]
#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications
)]
#![deny(clippy::all, clippy::pedantic, rust_2018_idioms)]

use ::std::{future::ready, time::Duration};

use outbox::{
    AnyEvent, Handler, HandlerError, Metadata, OutboxEvent, Retry, RetryAware, RetryBuilder, State,
    outbox_handler, retryable,
};
use serde::{Deserialize, Serialize};

/// Hides `::core` from code that writes `core`.
pub mod core {}
/// Hides `::std` from code that writes `std`.
pub mod std {}
/// Hides `::outbox` from code that writes `outbox::__private`.
pub mod __private {}

/// Hides the name of the prelude.
#[derive(Debug, Clone, Copy)]
pub enum Option {
    /// Hides the name of the prelude.
    Some,
    /// Hides the name of the prelude.
    None,
}
/// Hides the name of the prelude.
#[derive(Debug, Clone, Copy)]
pub struct Result;
/// Hides the name of the prelude.
#[derive(Debug, Clone, Copy)]
pub struct Box;
/// Hides the name of the prelude.
#[derive(Debug, Clone, Copy)]
pub struct String;
/// Hides the name of the prelude.
pub trait Default {}
/// Hides the name of the prelude.
pub trait From {}
/// Hides the primitive type.
#[derive(Debug, Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct u32;
/// Hides the primitive type.
#[derive(Debug, Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct bool;

/// An event with a key.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "strict.created", key = format!("{tenant}/{}", self.id), version = 2, aliases = ["strict.new"], validate = check)]
pub struct Created {
    tenant: i64,
    id: i64,
}

/// The event is not valid.
#[derive(Debug, thiserror::Error)]
#[error("not valid")]
pub struct Invalid;

const fn check(event: &Created) -> ::core::result::Result<(), Invalid> {
    if event.id < 0 { Err(Invalid) } else { Ok(()) }
}

/// A policy as a constant.
pub const GENTLE: RetryBuilder = Retry::builder().fixed(Duration::from_secs(9));

/// State.
#[derive(Debug, Clone)]
pub struct Bank;

/// A documented, public handler with every option.
///
/// # Errors
/// Never.
#[outbox_handler(
    id = "strict.everything",
    aliases = ["strict.all"],
    timeout = "30s",
    concurrency = 2,
    when = wanted,
    fallback = give_up,
    on_permanent_failure = skip
)]
#[retryable(exponential(initial = "1s", multiplier = 2.0, max = "1m"), max_retries = 3, jitter = full, retry_on(Invalid), retry_if = is_any)]
pub async fn everything(
    event: Created,
    meta: &Metadata,
    State(bank): State<Bank>,
) -> ::core::result::Result<(), Invalid> {
    let _ = (event, meta.attempt(), bank);
    ready(()).await;
    Ok(())
}

fn is_any(_error: &HandlerError) -> ::core::primitive::bool {
    true
}

fn wanted(event: &Created, _meta: &Metadata) -> ::core::primitive::bool {
    event.id > 0
}

async fn give_up(_event: Created, _error: &HandlerError, _bank: State<Bank>) {
    ready(()).await;
}

/// A handler with a policy of its own.
#[retryable(policy = GENTLE)]
#[outbox_handler]
pub async fn by_trait(_event: Created) {
    ready(()).await;
}

impl RetryAware for by_trait {
    type Policy = Retry;
    fn retry_policy(&self) -> Retry {
        Retry::default()
    }
}

#[outbox_handler(events = ["strict.*", "other"])]
async fn private_audit(_event: AnyEvent) {
    ready(()).await;
}

/// Handlers with an instance.
#[derive(Debug)]
pub struct Payments;

#[outbox_handler]
impl Payments {
    /// A constant that is no handler.
    pub const LIMIT: i64 = 7;

    /// A method that is a handler.
    #[outbox_handler]
    #[retryable(max_attempts = 2)]
    pub async fn on_created(&self, _event: Created) {
        ready(()).await;
    }
}

#[retryable(policy = "gentle")]
#[outbox_handler]
impl Handler<Created> for Bank {
    async fn handle(
        &self,
        _event: Created,
        _meta: &Metadata,
    ) -> ::core::result::Result<(), Invalid> {
        Ok(())
    }
}

#[outbox_handler]
impl Handler<AnyEvent> for Bank {
    async fn handle(&self, _event: AnyEvent, _meta: &Metadata) {}
}
