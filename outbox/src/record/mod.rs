//! Events, and the records that they become: the plain data of all other rooms.

mod any_event;
pub(crate) mod attempt;
mod event;
pub(crate) mod failure;
pub(crate) mod limits;
mod metadata;
mod name_pattern;
pub(crate) mod partition;
#[expect(clippy::module_inception, reason = "the record among its words")]
mod record;
mod status;

pub use any_event::AnyEvent;
pub(crate) use attempt::Attempt;
pub use event::{EventData, EventKey, OutboxEvent};
pub use metadata::Metadata;
pub(crate) use name_pattern::NamePattern;
pub(crate) use record::LONGEST_NAME;
pub use record::{EventError, Record};
pub use status::{DeliveryStatus, RecordStatus};
