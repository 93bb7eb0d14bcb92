#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
//!
//! # Layout
//!
//! The modules follow a record on its way. Words that all of them use: [`Record`], [`Attempt`],
//! [`Metadata`], [`Clock`].
//!
//! 1. **event**: what is published; [`OutboxEvent`], [`AnyEvent`].
//! 2. **schedule**: from an event to a record in the caller's transaction; `Outbox`, `Schedule`.
//! 3. **store**: the tables and every statement on them, per database.
//! 4. **lease**: which partitions of the keys this process owns.
//! 5. **fetch**: from the tables into memory: what to read, and from where on.
//! 6. **route**: which handlers a record goes to; **registry** says which there are: [`Registry`],
//!    its [`Report`].
//! 7. **lane**: what may run now, one record of a key and handler at a time.
//! 8. **dispatcher**: the loop that does what these decide; `Dispatcher`.
//! 9. **dispatch**: one record through one handler.
//! 10. **handler**: what it is given ([`FromContext`], [`State`], `Tx`) and what it answers
//!     ([`HandlerError`]).
//! 11. **retry**: what happens after a failure; [`RetryPolicy`], [`Retry`], [`decide`].
//! 12. **settle**: writes what became of records, many at a time.
//! 13. **operations**: what a person on call looks at and changes; `Operations`.
//!
//! **transaction** is beside that way: the service's own transactions, tried again as a whole;
//! commands that are done once, and an inbox.
//!
//! **metrics** is what all of these count, and **health** what a probe asks.
//!
//! **trace** is what is told of all this in spans and log lines.
//!
//! **config** is the same from a file and the environment; **testing** drives all of it by hand.

mod attempt;
mod clock;
mod metadata;
mod nearest;
mod record;
mod trace;

mod event;

#[cfg(feature = "_store")]
mod error;
#[cfg(feature = "_store")]
pub mod health;
#[cfg(feature = "_store")]
mod limits;
#[cfg(feature = "_store")]
pub mod metrics;
#[cfg(feature = "_store")]
pub mod operations;
#[cfg(feature = "_store")]
mod outbox;
#[cfg(feature = "_store")]
mod schedule;
#[cfg(feature = "_store")]
pub mod transaction;

#[cfg(feature = "_store")]
mod partition;
#[cfg(feature = "_store")]
mod store;
#[cfg(feature = "_store")]
mod wake;
#[cfg(feature = "_store")]
mod watch;

#[cfg(feature = "_store")]
mod dispatcher;
#[cfg(feature = "_store")]
mod fetch;
#[cfg(feature = "_store")]
mod lane;
#[cfg(feature = "_store")]
mod lease;
#[cfg(feature = "_store")]
mod outage;
#[cfg(feature = "_store")]
mod route;

mod registry;

mod dispatch;

mod handler;

mod retry;

#[cfg(feature = "_store")]
mod failure;
#[cfg(feature = "_store")]
mod settle;

mod config;

#[cfg(feature = "testing")]
pub mod testing;

#[doc(hidden)]
pub mod __private;

pub use attempt::Attempt;
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::{
    BasePolicy, Config, ConfigError, DuplicateErrorName, ExponentialConfig, FixedConfig,
    JitteredConfig, LinearConfig, LockingConfig, MetricsConfig, ObservabilityConfig, Place,
    PolicyConfig, PolicyKind, ProcessingConfig, Retention, RetryConfig, SchemaInitializationConfig,
};
#[cfg(feature = "config")]
pub use config::{ConfigLoader, Format};
#[cfg(feature = "_store")]
pub use dispatcher::Dispatcher;
#[cfg(feature = "_store")]
pub use error::{Error, Result};
pub use event::{AnyEvent, EventData, EventKey, OutboxEvent};
#[cfg(feature = "_store")]
pub use handler::Tx;
pub use handler::{
    BoxError, Context, FailureKind, Fallback, FromContext, Handler, HandlerError, IntoOutcome,
    Outcome, Panicked, ReceivedEvent, Requirements, State, TimedOut,
};
#[cfg(feature = "_store")]
pub use limits::Limits;
pub use metadata::Metadata;
#[cfg(feature = "_store")]
pub use operations::Operations;
#[cfg(feature = "_store")]
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
#[cfg(feature = "_store")]
pub use schedule::{Schedule, Scheduled};
#[cfg(feature = "_store")]
pub use store::Database;
