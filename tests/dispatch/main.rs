//! One record through one handler: its arguments, its result and the decision.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "every function here is part of a test"
)]

mod arguments;
mod events;
mod failures;
mod fallback;
