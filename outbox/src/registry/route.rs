//! [`Router`]: which handlers a record goes to.

use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;

use crate::registry::{HandlerIx, PerHandler, Registration, Registry};

/// Which handlers an event goes to, remembered per name.
#[derive(Debug)]
pub(crate) struct Router {
    handlers: PerHandler<&'static Registration>,
    known: RwLock<HashMap<String, Arc<[HandlerIx]>>>,
}

/// Names come from the database, so anybody may have made them: no more than this are remembered.
const MAX_REMEMBERED: usize = 10_000;

impl Router {
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            handlers: registry.per_handler(|entry| entry.registration),
            known: RwLock::default(),
        }
    }

    #[cfg(test)]
    pub(crate) fn for_tests(handlers: impl Iterator<Item = &'static Registration>) -> Self {
        Self {
            handlers: PerHandler::for_tests(handlers),
            known: RwLock::default(),
        }
    }

    /// The handlers that take events of this name.
    pub(crate) fn handlers_of(&self, event: &str) -> Arc<[HandlerIx]> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(handlers) = known.get(event) {
            return Arc::clone(handlers);
        }
        drop(known);
        let takers = self.handlers.iter();
        let handlers: Arc<[HandlerIx]> = takers
            .filter(|(_, registration)| registration.event.accepts(event))
            .map(|(handler, _)| handler)
            .collect();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_REMEMBERED {
            known.insert(event.to_owned(), Arc::clone(&handlers));
        }
        handlers
    }

    /// All handlers.
    pub(crate) fn handlers(&self) -> impl Iterator<Item = HandlerIx> + use<> {
        self.handlers.places()
    }

    /// A handler's stored id.
    pub(crate) fn id_of(&self, handler: HandlerIx) -> &'static str {
        self.handlers[handler].id
    }

    /// Each id that a handler had before it was renamed, with its present one.
    pub(crate) fn renames(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let handlers = self.handlers.iter();
        handlers.flat_map(|(_, handler)| handler.aliases.iter().map(|old| (*old, handler.id)))
    }

    /// The handler that has this id, or had it before it was renamed.
    pub(crate) fn by_id(&self, id: &str) -> Option<HandlerIx> {
        let mut handlers = self.handlers.iter();
        let (handler, _) = handlers.find(|(_, registration)| registration.is_called(id))?;
        Some(handler)
    }
}
