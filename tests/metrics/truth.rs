//! What really happened, as the handlers counted it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// How often what happened, by handler and word. Counted inside of handlers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth(Arc<Mutex<BTreeMap<(&'static str, &'static str), u32>>>);

impl Truth {
    pub(crate) fn add(&self, handler: &'static str, what: &'static str) {
        let mut counts = self.0.lock().expect("a lock");
        *counts.entry((handler, what)).or_default() += 1;
    }

    pub(crate) fn of(&self, handler: &'static str, what: &'static str) -> f64 {
        let counts = self.0.lock().expect("a lock");
        f64::from(counts.get(&(handler, what)).copied().unwrap_or(0))
    }

    /// The same of all handlers.
    pub(crate) fn all(&self, what: &str) -> f64 {
        let counts = self.0.lock().expect("a lock");
        let of = counts.iter().filter(|((_, is), _)| *is == what);
        of.map(|(_, count)| f64::from(*count)).sum()
    }
}
