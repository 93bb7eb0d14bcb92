//! [`UnhandledEvents`]: logs each event that no handler takes once, and counts its records.

use std::collections::HashMap;

use ::metrics::Counter;

use crate::telemetry::metrics::names;

/// The events that no handler takes, by name. The engine owns it.
#[derive(Debug, Default)]
pub(crate) struct UnhandledEvents {
    events: HashMap<String, Counter>,
    /// Counts all names after the first hundred.
    others: Option<Counter>,
}

/// Other programs may write any name into the database, so only the first hundred get a counter.
const MAX_NAMES: usize = 100;

impl UnhandledEvents {
    pub(crate) fn found(&mut self, event: &str) {
        if self.events.len() < MAX_NAMES && !self.events.contains_key(event) {
            tracing::warn!(
                event,
                "no handler takes this event here; its records stay until one does"
            );
            let counter = names::UNHANDLED_EVENTS.counter([event.to_owned().into()]);
            self.events.insert(event.to_owned(), counter);
        }
        let others = || names::UNHANDLED_EVENTS.counter(["(others)".into()]);
        let counter = match self.events.get(event) {
            Some(counter) => counter,
            None => self.others.get_or_insert_with(others),
        };
        counter.increment(1);
    }
}
