//! Which handlers a record goes to: found once per event name.

use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;

use crate::{
    registry::{HandlerEntry, Registration, Registry},
    runtime::lane::HandlerIx,
};

/// Which handlers an event goes to, remembered per name.
#[derive(Debug)]
pub(crate) struct Router {
    handlers: Vec<&'static Registration>,
    known: RwLock<HashMap<String, Arc<[HandlerIx]>>>,
}

/// Names come from the database, that is, from outside: no more than this are remembered.
const REMEMBERED: usize = 10_000;

impl Router {
    pub(crate) fn new(registry: &Registry) -> Self {
        let registration = |entry: &HandlerEntry| entry.registration;
        Self {
            handlers: registry.entries().iter().map(registration).collect(),
            known: RwLock::default(),
        }
    }

    /// Without a registry.
    #[cfg(test)]
    pub(crate) fn of(handlers: Vec<&'static Registration>) -> Self {
        Self {
            handlers,
            known: RwLock::default(),
        }
    }

    /// The handlers that want events of this name.
    pub(crate) fn route(&self, event: &str) -> Arc<[HandlerIx]> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(route) = known.get(event) {
            return Arc::clone(route);
        }
        drop(known);
        let route: Arc<[HandlerIx]> = (0..)
            .zip(&self.handlers)
            .filter(|(_, registration)| registration.event.accepts(event))
            .map(|(ix, _)| ix)
            .collect();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < REMEMBERED {
            known.insert(event.to_owned(), Arc::clone(&route));
        }
        route
    }

    /// A handler's stored id.
    pub(crate) fn id(&self, handler: HandlerIx) -> Option<&'static str> {
        Some(self.handlers.get(usize::from(handler))?.id)
    }

    /// The handler with this id, or that had it.
    pub(crate) fn handler(&self, id: &str) -> Option<HandlerIx> {
        let is_it = |handler: &Registration| handler.id == id || handler.aliases.contains(&id);
        let at = self.handlers.iter().position(|handler| is_it(handler))?;
        HandlerIx::try_from(at).ok()
    }
}
