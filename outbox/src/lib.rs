#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
//!
//! # Modules
//!
//! The [`guide`] explains the library task by task. The other modules follow a record from `publish` to
//! its final status.
#![cfg_attr(
    not(any(feature = "mysql", feature = "postgres", feature = "sqlite")),
    expect(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "a crate that only defines events and handlers needs no database"
    )
)]

pub mod record;

mod outbox;

mod store;

mod runtime;

pub mod registry;

pub mod handler;

pub mod retry;

pub mod operations;

pub mod transaction;

mod telemetry;

pub mod config;

#[cfg(feature = "testing")]
pub mod testing;

#[cfg(doc)]
pub mod guide;

#[doc(hidden)]
pub mod __private;

pub use crate::outbox::{Error, Outbox, OutboxBuilder, Result, Schedule, Scheduled, clock, error};
pub use config::Config;
pub use handler::{Context, FromContext, Handler, HandlerError, State};
pub use outbox_macros::{OutboxEvent, error_name, outbox_handler, retryable};
pub use record::{AnyEvent, Metadata, OutboxEvent};
pub use registry::{Registry, RegistryBuilder};
pub use retry::{Retry, RetryAware, RetryBuilder, RetryPolicy};
pub use runtime::Dispatcher;
pub use store::Database;
pub use telemetry::metrics;
#[doc(inline)]
pub use transaction::Tx;
