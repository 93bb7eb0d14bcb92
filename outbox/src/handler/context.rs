//! [`Context`]: the values from which the arguments of a handler are made.

use std::any::Any;
use std::{fmt, sync::Arc};

use super::{HandlerError, state::States};
use crate::record::Metadata;

/// The values from which the arguments of one invocation are made; see
/// [`FromContext`](crate::handler::FromContext).
pub struct Context {
    pub(super) metadata: Metadata,
    pub(super) states: Arc<States>,
    /// The handler's failure. `Some` only while its fallback runs.
    pub(super) failure: Option<HandlerError>,
    /// An [`OpenTransaction`](super::OpenTransaction) of the outbox's database, if the handler takes a `Tx`.
    pub(crate) transaction: Option<Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("metadata", &self.metadata)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

impl Context {
    pub(crate) fn new(metadata: Metadata, states: Arc<States>) -> Self {
        Self {
            metadata,
            states,
            failure: None,
            transaction: None,
        }
    }

    /// The context for the fallback of the same attempt.
    pub(crate) fn with_failure(self, failure: HandlerError) -> Self {
        Self {
            failure: Some(failure),
            ..self
        }
    }

    /// Returns the failure after the fallback has run. [`with_failure`](Self::with_failure) has set it.
    pub(crate) fn into_failure(self) -> HandlerError {
        self.failure
            .unwrap_or_else(|| HandlerError::permanent("the handler failed"))
    }

    /// The record's id, key and headers, and the number of this attempt.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Why the handler failed permanently. `None` unless a fallback runs.
    #[must_use]
    pub fn failure(&self) -> Option<&HandlerError> {
        self.failure.as_ref()
    }
}
