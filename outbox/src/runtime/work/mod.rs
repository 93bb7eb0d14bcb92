//! Running handlers.

pub(crate) mod attempt;
pub(super) mod pool;
pub(super) mod runner;
