//! The handlers of a process, and the choice of handlers for an event.
//!
//! | type | purpose |
//! |---|---|
//! | [`RegistryBuilder`] | collects handlers, state and retry policies |
//! | [`Registry`] | the handlers of this process, checked, each with its policy |
//! | [`RegistryError`], [`Problem`] | everything that is wrong at start-up, in one error |
//! | [`HandlerEntry`] | one handler of a registry |
//! | [`FailedDelivery`] | what a program's `on_failed` gets |
//! | [`Report`], [`HandlerReport`] | the handlers as a table for people, or as JSON for tools |
//! | [`Registered`] | a type that stands for a handler marked with `#[outbox_handler]` |
//!
//! An [`OutboxBuilder`](crate::OutboxBuilder) has the methods of the registry's builder, so most
//! programs never name a registry. Tests do. See the [guide](crate::guide::handlers).

mod builder;
mod check;
mod failure_hook;
mod handler_entry;
mod handler_ix;
#[cfg(feature = "inventory")]
pub(crate) mod linked;
pub(crate) mod nearest;
mod policies;
mod problem;
pub(crate) mod registration;
#[expect(
    clippy::module_inception,
    reason = "the type `Registry` has a file of its own"
)]
mod registry;
mod report;
pub(crate) mod route;
pub(crate) mod setting;

pub use builder::RegistryBuilder;
pub use failure_hook::FailedDelivery;
pub(crate) use failure_hook::FailureHook;
pub use handler_entry::HandlerEntry;
pub(crate) use handler_ix::{HandlerIx, PerHandler};
pub use problem::{PolicyPlace, Problem, RegistryError};
pub(crate) use registration::{
    AttributePolicy, EventMatch, Instances, Invocation, Registration, TypedEvent,
};
pub use registration::{Location, PermanentFailure, Registered};
pub use registry::Registry;
pub use report::{HandlerReport, Report};

pub use crate::retry::decision::NoHandler;
