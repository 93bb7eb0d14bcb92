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

/// See [`ClosureError`].
#[derive(Debug)]
pub enum Plain {}
/// See [`ClosureError`].
#[derive(Debug)]
pub enum Anyhow {}
/// See [`ClosureError`].
#[derive(Debug)]
pub enum Boxed {}

#[diagnostic::do_not_recommend]
impl<E: Error + 'static> ClosureError<Plain> for E {
    fn as_error(&self) -> &(dyn Error + 'static) {
        self
    }
}

impl ClosureError<Anyhow> for anyhow::Error {
    fn as_error(&self) -> &(dyn Error + 'static) {
        self.as_ref()
    }
}

impl ClosureError<Boxed> for Box<dyn Error + Send + Sync> {
    fn as_error(&self) -> &(dyn Error + 'static) {
        &**self
    }
}
