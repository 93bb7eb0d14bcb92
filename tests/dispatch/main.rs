//! One record through one handler: what it is given, what it answers, what is decided.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "every function here is part of a test"
)]

mod arguments;
mod events;
mod failures;
mod fallback;
