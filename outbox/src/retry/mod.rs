//! When the dispatcher tries a failed record again; see the [guide](crate::guide::retries).
//!
//! | type | purpose |
//! |---|---|
//! | [`RetryPolicy`] | decides whether and when a failed attempt is repeated |
//! | [`Retry`], [`RetryBuilder`] | the ready-made policy: back-off, jitter, limits, rules for errors |
//! | [`RetryAware`] | a handler that has a policy of its own |
//! | [`backoff`] | the delays as functions, and the trait for a back-off of your own |
//! | [`Jitter`], [`Random`] | how delays are spread, and the source of the random numbers |
//! | [`defaults`] | the numbers that hold where a program names none |
//! | [`PolicySource`], [`PolicyPart`] | where the policy of a handler, or a part of it, was set |
//! | [`FailedBecause`] | why a failure is final |
//! | [`PolicyError`] | why a policy cannot be built |
//!
//! A policy does no I/O. The clock and the random numbers are arguments.

pub mod backoff;
mod builder;
mod curve;
pub(crate) mod decide;
pub(crate) mod decision;
pub mod defaults;
mod error;
pub(crate) mod filter;
mod jitter;
#[cfg(test)]
mod laws;
mod names;
pub(crate) mod parts;
mod policy;
mod random;
pub(crate) mod resolve;

pub use builder::{Retry, RetryBuilder};
pub(crate) use decide::decide;
pub use decision::FailedBecause;
pub(crate) use decision::{Completion, Decision, NoHandler};
pub use error::{PolicyDuration, PolicyError, UnknownErrorName};
pub use jitter::Jitter;
pub use parts::PolicyPart;
pub(crate) use parts::RetryParts;
pub(crate) use policy::UnbuiltPolicy;
pub use policy::{IntoPolicy, RetryAware, RetryPolicy};
pub(crate) use random::between;
pub use random::{Random, ThreadRandom};
pub use resolve::PolicySource;
pub(crate) use resolve::{Resolved, resolve};
