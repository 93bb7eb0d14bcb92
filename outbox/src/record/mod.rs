//! Events, and the records that they become: the plain data of all other rooms.

mod any_event;
pub(crate) mod attempt;
mod event;
pub(crate) mod failure;
pub(crate) mod limits;
mod metadata;
mod name_pattern;
mod partition;
mod raw_event;
#[expect(
    clippy::module_inception,
    reason = "the type that the room is named after"
)]
mod record;
mod status;

pub use any_event::AnyEvent;
pub(crate) use attempt::Attempt;
pub use event::{EventData, EventKey, OutboxEvent};
pub use metadata::Metadata;
pub(crate) use name_pattern::NamePattern;
pub(crate) use partition::Partition;
pub use raw_event::RawEvent;
pub(crate) use raw_event::may_be_name;
pub(crate) use record::LONGEST_NAME;
pub use record::{EventError, Record};
pub use status::{DeliveryStatus, RecordStatus};
