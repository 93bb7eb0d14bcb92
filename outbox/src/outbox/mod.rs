//! The front door: builds an [`Outbox`], publishes events, and says what went wrong.

pub mod clock;
pub(crate) mod error;
#[expect(
    clippy::module_inception,
    reason = "the type that the room is named after"
)]
mod outbox;
mod schedule;

pub use error::{Error, Result};
pub(crate) use outbox::{Inner, PARTITIONS};
pub use outbox::{Outbox, OutboxBuilder};
pub use schedule::{Schedule, Scheduled};
