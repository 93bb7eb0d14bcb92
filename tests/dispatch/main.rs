//! One record through one handler: its arguments, its result and the decision.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "every function here is part of a test"
)]

mod after_the_last_attempt;
mod arguments;
mod events;
mod failures;
mod fallback;
mod on_failed;
mod scene;
mod validate;
