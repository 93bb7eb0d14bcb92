//! The counts of the handlers themselves.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// How often each outcome happened, by handler. Handlers count it themselves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth(Arc<Mutex<BTreeMap<(&'static str, &'static str), u32>>>);

impl Truth {
    pub(crate) fn add(&self, handler: &'static str, outcome: &'static str) {
        let mut counts = self.0.lock().expect("a lock");
        *counts.entry((handler, outcome)).or_default() += 1;
    }

    pub(crate) fn of(&self, handler: &'static str, outcome: &'static str) -> f64 {
        let counts = self.0.lock().expect("a lock");
        f64::from(counts.get(&(handler, outcome)).copied().unwrap_or(0))
    }

    /// The count of an outcome of all handlers together.
    pub(crate) fn all(&self, outcome: &str) -> f64 {
        let counts = self.0.lock().expect("a lock");
        let matching = counts.iter().filter(|((_, name), _)| *name == outcome);
        matching.map(|(_, count)| f64::from(*count)).sum()
    }
}
