//! Spans and log lines: what they say, and what they never say.

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
