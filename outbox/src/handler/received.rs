//! [`ReceivedEvent`]: the first argument of a handler.

use super::{Context, HandlerError};
use crate::{
    record::{AnyEvent, OutboxEvent},
    registry::{EventMatch, TypedEvent},
};

/// A type that may be the first argument of a handler: an [`OutboxEvent`] by value, or [`AnyEvent`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the event of an outbox handler",
    label = "expected an event by value",
    note = "the first argument is a type that derives `outbox::OutboxEvent`, by value and not by reference, or `outbox::AnyEvent`"
)]
pub trait ReceivedEvent: Sized + Send {
    #[doc(hidden)]
    const MATCH: EventMatch;

    #[doc(hidden)]
    fn receive(context: &Context) -> Result<Self, HandlerError>;
}

#[diagnostic::do_not_recommend]
impl<E: OutboxEvent> ReceivedEvent for E {
    const MATCH: EventMatch = EventMatch::Typed(TypedEvent {
        name: E::NAME,
        aliases: E::ALIASES,
        type_name: std::any::type_name::<E>,
    });

    fn receive(context: &Context) -> Result<Self, HandlerError> {
        context.metadata.record.decode()
    }
}

impl ReceivedEvent for AnyEvent {
    const MATCH: EventMatch = EventMatch::Patterns(&["*"]);

    fn receive(context: &Context) -> Result<Self, HandlerError> {
        let record = context.metadata.record.clone();
        Ok(Self { record })
    }
}

/// An event type for which `#[outbox_handler(events = "..")]` is allowed. Only [`AnyEvent`] is one,
/// because every other event type has its own name.
#[diagnostic::on_unimplemented(
    message = "`events = \"..\"` needs an event of type `AnyEvent`, not `{Self}`",
    label = "this event type has its own name",
    note = "remove `events`, or take `outbox::AnyEvent` as the first argument"
)]
pub trait ChosenByName {}

impl ChosenByName for AnyEvent {}
