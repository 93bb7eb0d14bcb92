//! Events that no handler takes: logged once for each name, and counted.

use std::collections::HashMap;

use ::metrics::Counter;

use crate::telemetry::metrics::names;

/// By the name of the event.
#[derive(Debug, Default)]
pub(crate) struct Unhandled {
    events: HashMap<String, Counter>,
    /// All names beyond the first hundred.
    others: Option<Counter>,
}

/// Names come from the database, that is, from outside: only the first hundred get a counter.
const MAX_NAMES: usize = 100;

impl Unhandled {
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
