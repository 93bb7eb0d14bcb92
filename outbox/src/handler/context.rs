//! [`Context`]: everything that the arguments of a handler are made from.

use std::any::Any;
use std::{fmt, sync::Arc};

use super::{HandlerError, state::States};
use crate::record::Metadata;

/// What the arguments of one invocation are made from; see [`FromContext`](crate::handler::FromContext).
pub struct Context {
    pub(super) metadata: Metadata,
    pub(super) states: Arc<States>,
    /// Why the handler failed for good: only there while its fallback runs.
    pub(super) failure: Option<HandlerError>,
    /// A `Slot` of the outbox's database, if the handler takes a `Tx`.
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

    /// For the fallback of the same invocation.
    pub(crate) fn with_failure(self, failure: HandlerError) -> Self {
        Self {
            failure: Some(failure),
            ..self
        }
    }

    /// Gives the failure back after the fallback. There is one after [`with_failure`](Self::with_failure).
    pub(crate) fn into_failure(self) -> HandlerError {
        self.failure
            .unwrap_or_else(|| HandlerError::permanent("the handler failed"))
    }

    /// What is known about the record and this attempt.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Why the handler failed for good. Only a fallback sees one.
    #[must_use]
    pub fn failure(&self) -> Option<&HandlerError> {
        self.failure.as_ref()
    }
}
