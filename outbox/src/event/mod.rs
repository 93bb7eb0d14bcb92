//! What is published and handled: typed events, and any event by its stored name.

mod any_event;
mod name_pattern;
mod outbox_event;

pub use any_event::AnyEvent;
pub(crate) use name_pattern::NamePattern;
pub use outbox_event::{EventData, EventKey, OutboxEvent};
