//! [`ClosureError`]: the error types that a closure may return.

use std::error::Error;

/// The error types that a closure may return: any `std::error::Error`, `anyhow::Error`, or a boxed
/// error.
///
/// The parameter `Kind` keeps these three implementations apart. The compiler infers it.
///
/// ```
/// use outbox::transaction::ClosureError;
///
/// fn accepts<Kind>(_: impl ClosureError<Kind>) {}
/// accepts(std::fmt::Error);
/// accepts(anyhow::anyhow!("no"));
/// accepts(Box::<dyn std::error::Error + Send + Sync>::from("no"));
/// ```
#[diagnostic::on_unimplemented(
    message = "a transaction's closure cannot fail with `{Self}`",
    note = "it may be any `std::error::Error + 'static`, `anyhow::Error` or `Box<dyn Error + Send + Sync>`"
)]
pub trait ClosureError<Kind> {
    /// The error with its sources. A database error is looked for among them.
    fn as_error(&self) -> &(dyn Error + 'static);
}

/// [`ClosureError::as_error`], without the kind.
pub(super) type AsError<E> = fn(&E) -> &(dyn Error + 'static);

#[diagnostic::do_not_recommend]
impl<E: Error + 'static> ClosureError<()> for E {
    fn as_error(&self) -> &(dyn Error + 'static) {
        self
    }
}

impl ClosureError<Self> for anyhow::Error {
    fn as_error(&self) -> &(dyn Error + 'static) {
        self.as_ref()
    }
}

impl ClosureError<Self> for Box<dyn Error + Send + Sync> {
    fn as_error(&self) -> &(dyn Error + 'static) {
        &**self
    }
}
