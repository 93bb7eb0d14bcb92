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

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod limits;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod outbox;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod schedule;

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod error;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod partition;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod store;

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
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use error::{Error, Result};
pub use event::{AnyEvent, EventData, EventKey, OutboxEvent};
pub use handler::{
    BoxError, Context, FailureKind, Fallback, FromContext, Handler, HandlerError, IntoOutcome,
    Outcome, Panicked, ReceivedEvent, Requirements, State, TimedOut,
};
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use limits::Limits;
pub use metadata::Metadata;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use outbox::{Outbox, OutboxBuilder};
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
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use schedule::{Schedule, Scheduled};
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use store::Database;
