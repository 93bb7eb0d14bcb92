//! x
extern crate self as outbox;
mod attempt;
mod clock;
mod handler;
mod retry;
pub use attempt::Attempt;
pub use clock::*;
pub use handler::*;
pub use retry::*;
