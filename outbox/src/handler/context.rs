//! [`Context`]: the values from which the arguments of a handler are made.

use std::{any::Any, fmt, sync::Arc};

use super::{HandlerError, state::States};
use crate::record::Metadata;

/// The values from which the arguments of one invocation are made; see
/// [`FromContext`](crate::handler::FromContext).
pub struct Context {
    pub(super) metadata: Metadata,
    pub(super) states: Arc<States>,
    /// The handler's failure. `Some` only while its fallback runs.
    pub(crate) failure: Option<HandlerError>,
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
