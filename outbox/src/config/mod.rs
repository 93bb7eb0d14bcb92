//! Settings as plain data, and how they are read from files and the environment; see the
//! [guide](crate::guide::configuration).
//!
//! [`Config`] and the structs in it always exist. The feature `config` (on by default) adds
//! [`Config::load`], which reads text into a tree of nodes that know their places, lays environment
//! variables over it, hands it to `serde`, and checks the values.
//!
//! For compatibility with configurations of similar libraries: [`JitteredConfig`], [`BasePolicy`],
//! the prefix `namastack.outbox`, and `load/reference_keys.rs`.

mod check;
#[expect(
    clippy::module_inception,
    reason = "the type that the room is named after"
)]
mod config;
mod declare;
mod duration;
mod error;
pub(crate) mod error_names;
mod jitter;
#[cfg(feature = "config")]
mod load;
mod place;
pub(crate) mod places;
mod policy;
mod retention;
mod retry;
mod sections;
mod written;

pub use crate::record::limits::Limits;
pub use config::Config;
pub use error::ConfigError;
pub use error_names::DuplicateErrorName;
#[cfg(feature = "config")]
pub use load::{ConfigLoader, Format};
pub use place::Place;
pub use policy::{
    BasePolicy, ExponentialConfig, FixedConfig, JitteredConfig, LinearConfig, PolicyConfig,
    PolicyKind,
};
pub use retention::Retention;
pub use retry::RetryConfig;
pub(crate) use sections::DEFAULT_PARTITIONS;
pub use sections::{
    LockingConfig, MetricsConfig, ObservabilityConfig, ProcessingConfig, SchemaInitializationConfig,
};
