//! The front door: [`Outbox`], its builder, publishing, and [`Error`].

mod builder;
pub mod clock;
pub mod error;
pub(crate) mod named;
#[expect(clippy::module_inception, reason = "the type that names the room")]
mod outbox;
mod publish;
mod raw;
mod schedule;
mod time;

pub use builder::OutboxBuilder;
pub(crate) use error::{DbContext, Operation};
pub use error::{Error, Result};
pub use outbox::Outbox;
pub(crate) use outbox::Shared;
pub use schedule::{Schedule, Scheduled};
