//! [`Router`]: finds the handlers of an event.

use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;

use crate::registry::{HandlerIx, PerHandler, Registration, Registry};

/// Finds the handlers of an event, and caches them by the name of the event.
#[derive(Debug)]
pub(crate) struct Router {
    handlers: PerHandler<&'static Registration>,
    cache: RwLock<HashMap<String, Arc<[HandlerIx]>>>,
}

/// How many names are cached. Names come from the database, so any program may have stored them.
const MAX_CACHED: usize = 10_000;

impl Router {
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            handlers: registry.per_handler(|entry| entry.registration),
            cache: RwLock::default(),
        }
    }

    #[cfg(test)]
    pub(crate) fn for_tests(handlers: impl Iterator<Item = &'static Registration>) -> Self {
        Self {
            handlers: PerHandler::for_tests(handlers),
            cache: RwLock::default(),
        }
    }

    /// The handlers that take events of this name.
    pub(crate) fn handlers_of(&self, event: &str) -> Arc<[HandlerIx]> {
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(handlers) = cache.get(event) {
            return Arc::clone(handlers);
        }
        drop(cache);
        let registrations = self.handlers.iter();
        let handlers: Arc<[HandlerIx]> = registrations
            .filter(|(_, registration)| registration.event.accepts(event))
            .map(|(handler, _)| handler)
            .collect();
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        if cache.len() < MAX_CACHED {
            cache.insert(event.to_owned(), Arc::clone(&handlers));
        }
        handlers
    }

    /// All handlers.
    pub(crate) fn handlers(&self) -> impl Iterator<Item = HandlerIx> + use<> {
        self.handlers.indexes()
    }

    /// A handler's stored id.
    pub(crate) fn id_of(&self, handler: HandlerIx) -> &'static str {
        self.handlers[handler].id
    }

    /// Each id that a handler had before it was renamed, with its current id.
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
