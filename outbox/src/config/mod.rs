//! Settings as plain data, and how they are read from files and the environment; see the
//! [guide](crate::guide::configuration).
//!
//! [`Config`] and the structs in it do not depend on a feature. With the feature `config` (on by
//! default) [`load`] reads them: text → tree of nodes with places → prefix → environment → `serde` →
//! [`check`]. [`policy`] turns the section `retry` into a [`Retry`](crate::retry::Retry).
//!
//! For compatibility with configurations of similar libraries: [`JitteredConfig`], [`BasePolicy`],
//! the prefix `namastack.outbox`, and `load/reference_keys.rs`.

mod check;
#[expect(
    clippy::module_inception,
    reason = "the type that the room is named after"
)]
mod config;
mod duration;
mod error;
pub(crate) mod error_names;
mod jitter;
#[cfg(feature = "config")]
mod load;
mod locking;
mod metrics;
mod observability;
mod place;
mod policy;
mod processing;
mod retention;
mod retry;
mod schema_initialization;
mod written;

pub use crate::record::limits::Limits;
pub use config::Config;
pub use error::ConfigError;
pub use error_names::DuplicateErrorName;
#[cfg(feature = "config")]
pub use load::{ConfigLoader, Format};
pub use locking::LockingConfig;
pub use metrics::MetricsConfig;
pub use observability::ObservabilityConfig;
pub use place::Place;
pub use policy::{
    BasePolicy, ExponentialConfig, FixedConfig, JitteredConfig, LinearConfig, PolicyConfig,
    PolicyKind,
};
pub use processing::ProcessingConfig;
pub use retention::Retention;
pub use retry::RetryConfig;
pub use schema_initialization::SchemaInitializationConfig;
