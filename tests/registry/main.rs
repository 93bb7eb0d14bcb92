//! The checks of the registry at start-up, the policies that it resolves, and its report.

#![expect(clippy::unwrap_used, reason = "every function here is part of a test")]

mod fields;
mod invocations;
mod named;
mod resolution;
mod start_up;
