//! The contents of spans and log lines, and the secrets that they never contain.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "every function here is part of a test"
)]

mod context;
mod lines;
mod process;
mod secrets;
mod trace;
