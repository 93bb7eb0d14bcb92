//! What `#[outbox_handler]` leaves behind for each handler: constant data and plain functions,
//! so that nothing runs before the registry is built. The only place that names `inventory`.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use serde::Serialize;

#[cfg(feature = "inventory")]
use crate::retry::filter::ErrorType;
use crate::{
    handler::{Context, Outcome, Requirements, States},
    record::NamePattern,
    retry::{PolicyError, RetryPolicy},
};

/// A future that borrows the invocation's context.
pub type Invocation<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// One handler, as constant data. Made by `#[outbox_handler]` only.
#[derive(Debug)]
pub struct Registration {
    /// The stored id.
    pub id: &'static str,
    /// Older ids.
    pub aliases: &'static [&'static str],
    /// Where it stands in the source.
    pub location: Location,
    /// Which events it wants.
    pub event: EventMatch,
    /// Adds what the arguments need.
    pub requires: fn(&mut Requirements),
    /// Decodes the event, asks the guard, makes the arguments, runs the handler.
    pub invoke: for<'a> fn(&'a Context) -> Invocation<'a>,
    /// What runs when it has failed for good.
    pub fallback: Option<FallbackFn>,
    /// How long one invocation may take.
    pub timeout: Option<Duration>,
    /// How many invocations may run at once in this process.
    pub concurrency: Option<u32>,
    /// What that does to its lane.
    pub on_permanent_failure: PermanentFailure,
    /// From `impl RetryAware`, if there is one.
    pub of_trait: Option<TraitPolicy>,
    /// From `#[retryable]`, if there is one.
    pub of_attribute: Option<AttributePolicy>,
}

/// The two sides of a fallback: what it needs, and how it is run.
#[derive(Debug, Clone, Copy)]
pub struct FallbackFn {
    /// Adds what its arguments need.
    pub requires: fn(&mut Requirements),
    /// Decodes the event, makes the arguments, runs it.
    pub invoke: for<'a> fn(&'a Context) -> Invocation<'a>,
}

/// Asks a handler's `RetryAware` for its policy; `None` if the instance it belongs to is missing.
pub type TraitPolicy = fn(&Instances<'_>) -> Option<Arc<dyn RetryPolicy>>;

/// The application's values, as [`TraitPolicy`] sees them.
#[derive(Debug)]
pub struct Instances<'a>(pub(crate) &'a States);

impl Instances<'_> {
    /// The value of this type, if it was given.
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.get()
    }
}

/// What `#[retryable]` says.
#[derive(Debug, Clone, Copy)]
pub enum AttributePolicy {
    /// `policy = "name"`.
    Named(&'static str),
    /// Anything else.
    Built(fn() -> Result<Arc<dyn RetryPolicy>, PolicyError>),
}

/// Which events a handler wants.
#[derive(Debug, Clone, Copy)]
pub enum EventMatch {
    /// Those of its event type.
    Typed(TypedEvent),
    /// Those whose name matches one of the patterns.
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

/// What a record that failed for good does to the records behind it in its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PermanentFailure {
    /// They wait until it is replayed or discarded.
    Block,
    /// They go on.
    Skip,
}

/// Where in the source a handler stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "written by generated code")]
pub struct Location {
    /// The file, as the compiler was given it.
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

/// A type that stands for one or more marked handlers: a function's namesake, or a type with a
/// marked `impl` block. `Of` is the event for `impl Handler<Of> for T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler marked with `#[outbox_handler]`",
    label = "not a marked handler",
    note = "mark the function or the `impl` block with `#[outbox_handler]`; for `#[outbox_handler] impl Handler<E> for T` use `.handler_for::<T, E>()`"
)]
pub trait Registered<Of = ()> {
    #[doc(hidden)]
    const REGISTRATIONS: &'static [Registration];
}

/// Handlers that registered themselves by being linked.
#[cfg(feature = "inventory")]
#[derive(Debug)]
pub struct Submission(pub &'static [Registration]);

#[cfg(feature = "inventory")]
inventory::collect!(Submission);

/// An error type that registered its name by being linked.
#[cfg(feature = "inventory")]
#[expect(
    missing_debug_implementations,
    reason = "only generated code makes one"
)]
pub struct NamedErrorType {
    /// The name in a configuration.
    pub name: &'static str,
    pub(crate) ty: fn() -> ErrorType,
}

#[cfg(feature = "inventory")]
impl NamedErrorType {
    /// The type `E` under this name.
    #[must_use]
    pub const fn new<E: std::error::Error + 'static>(name: &'static str) -> Self {
        Self {
            name,
            ty: ErrorType::of::<E>,
        }
    }
}

#[cfg(feature = "inventory")]
inventory::collect!(NamedErrorType);

/// Every handler that is linked into this program, in no particular order.
#[cfg(feature = "inventory")]
pub(super) fn linked() -> impl Iterator<Item = &'static Registration> {
    inventory::iter::<Submission>
        .into_iter()
        .flat_map(|submission| submission.0)
}

/// Every error type that is linked into this program with a name of its own.
#[cfg(feature = "inventory")]
pub(crate) fn linked_error_types() -> impl Iterator<Item = (&'static str, ErrorType)> {
    inventory::iter::<NamedErrorType>
        .into_iter()
        .map(|named| (named.name, (named.ty)()))
}
