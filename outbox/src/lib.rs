//! x
extern crate self as outbox;
mod attempt;
mod clock;
mod config;
mod handler;
mod retry;
pub use attempt::Attempt;
pub use clock::*;
pub use config::{
    BasePolicy, Config, ConfigError, DuplicateErrorName, ExponentialConfig, FixedConfig,
    JitteredConfig, LinearConfig, LockingConfig, Place, PolicyConfig, PolicyKind, ProcessingConfig,
    RetryConfig, SchemaInitializationConfig,
};
#[cfg(feature = "config")]
pub use config::{ConfigLoader, Format};
pub use handler::*;
pub use retry::*;
