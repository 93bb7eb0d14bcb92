//! Runs handlers: the [`runner`] starts bursts in the [`pool`], whose [`worker`]s make one
//! [`attempt`] after the other.

pub(crate) mod attempt;
mod conflict;
pub(super) mod pool;
pub(super) mod runner;
mod worker;
