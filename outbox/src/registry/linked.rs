//! Handlers and names of error types that are registered because they are linked. Only this file names
//! `inventory`.

use super::Registration;
use crate::retry::filter::ErrorType;

/// Handlers of one attribute.
#[derive(Debug)]
pub struct Submission(pub &'static [Registration]);

inventory::collect!(Submission);

/// The name of an error type.
#[expect(
    missing_debug_implementations,
    reason = "only generated code makes one"
)]
pub struct NamedErrorType {
    /// The name in a configuration.
    pub name: &'static str,
    ty: fn() -> ErrorType,
}

impl NamedErrorType {
    /// Names the type `E`.
    #[must_use]
    pub const fn new<E: std::error::Error + 'static>(name: &'static str) -> Self {
        let ty = ErrorType::of::<E>;
        Self { name, ty }
    }
}

inventory::collect!(NamedErrorType);

/// Every handler that is linked into this program, in any order.
pub(super) fn linked() -> impl Iterator<Item = &'static Registration> {
    let submissions = inventory::iter::<Submission>.into_iter();
    submissions.flat_map(|submission| submission.0)
}

/// Every error type that has a name and is linked into this program.
pub(crate) fn linked_error_types() -> impl Iterator<Item = (&'static str, ErrorType)> {
    let named = inventory::iter::<NamedErrorType>.into_iter();
    named.map(|named| (named.name, (named.ty)()))
}
