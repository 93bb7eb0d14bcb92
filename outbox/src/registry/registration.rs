//! [`Registration`]: what `#[outbox_handler]` generates for each handler. It consists of constants
//! and function pointers, so no code runs before the registry is built.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use serde::Serialize;

use crate::{
    handler::{Context, Outcome, Requirements, States},
    record::NamePattern,
    retry::{PolicyError, RetryParts, RetryPolicy},
};

/// The future of one invocation. It borrows the context.
pub type Invocation<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// One handler, as constant data. Only `#[outbox_handler]` makes one.
#[derive(Debug)]
pub struct Registration {
    /// The stored id.
    pub id: &'static str,
    /// Older ids.
    pub aliases: &'static [&'static str],
    /// The source location of the handler.
    pub location: Location,
    /// Which events the handler takes.
    pub event: EventMatch,
    /// Adds the requirements of the handler's arguments.
    pub requires: fn(&mut Requirements),
    /// Decodes and checks the event, calls the guard, makes the arguments and runs the handler.
    pub invoke: for<'a> fn(&'a Context) -> Invocation<'a>,
    /// Runs after a permanent failure.
    pub fallback: Option<FallbackFn>,
    /// The time limit of one invocation.
    pub timeout: Option<Duration>,
    /// How many invocations may run at the same time in this process.
    pub concurrency: Option<u32>,
    /// What a permanent failure does to later records of the lane.
    pub on_permanent_failure: PermanentFailure,
    /// The policy of `impl RetryAware`.
    pub of_trait: Option<TraitPolicy>,
    /// The policy of `#[retryable]`.
    pub of_attribute: Option<AttributePolicy>,
}

/// A fallback, as constant data.
#[derive(Debug, Clone, Copy)]
pub struct FallbackFn {
    /// Adds the requirements of its arguments.
    pub requires: fn(&mut Requirements),
    /// Decodes the event, makes the arguments and runs the fallback.
    pub invoke: for<'a> fn(&'a Context) -> Invocation<'a>,
}

/// Gets the policy of a handler's `RetryAware`. `None` if the program did not give the instance.
pub type TraitPolicy = fn(&Instances<'_>) -> Option<Arc<dyn RetryPolicy>>;

/// The application's values, for a [`TraitPolicy`].
#[derive(Debug)]
pub struct Instances<'a>(pub(crate) &'a States);

impl Instances<'_> {
    /// The value of type `T`, if the program gave one.
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.get()
    }
}

/// The policy of a `#[retryable]`.
#[derive(Debug, Clone, Copy)]
pub enum AttributePolicy {
    /// `policy = "name"`.
    Named(&'static str),
    /// `policy = ..` with a type or a value.
    Built(fn() -> Result<Arc<dyn RetryPolicy>, PolicyError>),
    /// Written inline. The parts that it does not name come from the next weaker place.
    Inline(fn() -> RetryParts),
}

/// Which events a handler takes.
#[derive(Debug, Clone, Copy)]
pub enum EventMatch {
    /// The events of one type.
    Typed(TypedEvent),
    /// The events whose name matches one of the patterns.
    Patterns(&'static [&'static str]),
}

/// The stored names of an event type.
#[derive(Debug, Clone, Copy)]
pub struct TypedEvent {
    /// The stored name.
    pub name: &'static str,
    /// Older names.
    pub aliases: &'static [&'static str],
    /// The Rust type.
    pub type_name: fn() -> &'static str,
}

impl Registration {
    /// Whether the handler has this id, or had it before it was renamed.
    pub(super) fn is_called(&self, id: &str) -> bool {
        self.id == id || self.aliases.contains(&id)
    }
}

impl EventMatch {
    pub(crate) fn accepts(&self, event: &str) -> bool {
        match self {
            Self::Typed(typed) => typed.name == event || typed.aliases.contains(&event),
            Self::Patterns(patterns) => patterns.iter().any(|p| NamePattern(p).matches(event)),
        }
    }
}

impl fmt::Display for EventMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Typed(typed) => f.write_str(typed.name),
            Self::Patterns(patterns) => f.write_str(&patterns.join(", ")),
        }
    }
}

/// What a permanent failure of a record does to later records of its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PermanentFailure {
    /// Later records wait until an operator replays or discards the failed one.
    Block,
    /// Later records are delivered.
    Skip,
}

/// A place in the source code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "written by generated code")]
pub struct Location {
    /// The path of the file, as `file!()` reports it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A type that stands for one or more handlers: the type that `#[outbox_handler]` generates for a
/// function, or a type with a marked `impl` block. `Of` is the event of `impl Handler<Of> for T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler marked with `#[outbox_handler]`",
    label = "not a marked handler",
    note = "mark the function or the `impl` block with `#[outbox_handler]`; for `#[outbox_handler] impl Handler<E> for T` use `.handler_for::<T, E>()`"
)]
pub trait Registered<Of = ()> {
    #[doc(hidden)]
    const REGISTRATIONS: &'static [Registration];
}
