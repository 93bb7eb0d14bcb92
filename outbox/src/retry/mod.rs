//! When a failed attempt is made again; see the [guide](crate::guide::retries).
//!
//! A [`RetryPolicy`] decides. [`Retry`] is the ready-made one: a [`backoff`], a [`Jitter`], limits,
//! and rules over error types. A policy does no I/O; the clock and random numbers are passed in.

pub mod backoff;
pub(crate) mod builder;
pub(crate) mod decide;
pub(crate) mod decision;
mod error;
pub(crate) mod filter;
mod jitter;
#[cfg(test)]
mod laws;
pub(crate) mod policy;
mod random;
pub(crate) mod resolve;
mod shape;

pub use builder::{Retry, RetryBuilder};
pub(crate) use decide::decide;
pub(crate) use decision::{Completion, Decision, FailedBecause, NoHandler};
pub use error::{PolicyError, UnknownErrorName};
pub use jitter::Jitter;
pub use policy::{IntoPolicy, RetryAware, RetryPolicy};
pub(crate) use random::between;
pub use random::{Random, ThreadRandom};
pub use resolve::PolicySource;
pub(crate) use resolve::{Candidates, resolve};
