#![doc = include_str!("../../README.md")]
//!
//! # Layout
//!
//! The modules follow a record on its way. Words that all of them use: [`Record`], [`Attempt`],
//! [`Metadata`], [`Clock`].
//!
//! 1. **event**: what is published; [`OutboxEvent`], [`AnyEvent`].
//! 2. **registry**: which handlers there are; [`Registry`], its [`Report`].
//! 3. **dispatch**: one record through one handler, in memory.
//! 4. **handler**: what it is given ([`FromContext`], [`State`]) and what it answers ([`HandlerError`]).
//! 5. **retry**: what happens after a failure; [`RetryPolicy`], [`Retry`], [`decide`].
//! 6. **config**: the same from a file and the environment.

mod attempt;
mod clock;
mod metadata;
mod nearest;
mod record;

mod event;

mod registry;

mod dispatch;

mod handler;

mod retry;

mod config;

#[doc(hidden)]
pub mod __private;

pub use attempt::Attempt;
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::{
    BasePolicy, Config, ConfigError, DuplicateErrorName, ExponentialConfig, FixedConfig,
    JitteredConfig, LinearConfig, LockingConfig, Place, PolicyConfig, PolicyKind, ProcessingConfig,
    RetryConfig, SchemaInitializationConfig,
};
#[cfg(feature = "config")]
pub use config::{ConfigLoader, Format};
pub use event::{AnyEvent, EventData, EventKey, OutboxEvent};
pub use handler::{
    BoxError, Context, FailureKind, Fallback, FromContext, Handler, HandlerError, IntoOutcome,
    Outcome, Panicked, ReceivedEvent, Requirements, State, TimedOut,
};
pub use metadata::Metadata;
pub use outbox_macros::{OutboxEvent, error_name, outbox_handler, retryable};
pub use record::{EventError, Record};
pub use registry::{
    HandlerEntry, HandlerReport, Location, PermanentFailure, Problem, Registered, Registry,
    RegistryBuilder, RegistryError, Report,
};
pub use retry::{
    Candidates, Completion, Decision, FailedBecause, IntoPolicy, Jitter, NoHandler, PolicyError,
    PolicySource, Random, Resolved, Retry, RetryAware, RetryBuilder, RetryPolicy, ThreadRandom,
    UnknownErrorName, backoff, decide, resolve,
};
