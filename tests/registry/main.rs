//! What is checked and resolved at start-up, and what is reported of it.

#![expect(clippy::unwrap_used, reason = "every function here is part of a test")]

mod named;
mod resolution;
mod start_up;
