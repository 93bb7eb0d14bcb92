//! [`Counted`]: a metrics recorder that keeps every increment of a counter, in order.

use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, Key, KeyName, Label, LocalRecorderGuard, Metadata,
    Recorder, SharedString, Unit, set_default_local_recorder,
};
use outbox::metrics::names;

/// Short names of the counters, for the assertions of these tests.
const SHORT: [(&str, &str); 7] = [
    (names::TRANSACTION_RETRIES.name, "retry"),
    (names::TRANSACTION_EXHAUSTED.name, "exhausted"),
    (names::TRANSACTION_SUCCESSES.name, "success"),
    (names::TRANSACTION_DEADLOCKS.name, "deadlock"),
    (
        names::TRANSACTION_SERIALIZATION_FAILURES.name,
        "serialization_failure",
    ),
    (names::TRANSACTION_LOCK_TIMEOUTS.name, "lock_timeout"),
    (names::TRANSACTION_SKIPPED.name, "skipped_deadline"),
];

/// The increments of transaction counters on this thread, as "metric label label". A test and all
/// its tasks run on one thread.
#[derive(Clone, Default)]
pub(crate) struct Counted(Arc<Mutex<Vec<String>>>);

impl Counted {
    /// Records until the guard is dropped.
    pub(crate) fn install(&self) -> LocalRecorderGuard<'static> {
        // The guard needs a `'static` reference. The leak is a few bytes per test.
        set_default_local_recorder(Box::leak(Box::new(self.clone())))
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn of(&self, text: &str) -> usize {
        let all = self.all();
        all.iter().filter(|count| count.starts_with(text)).count()
    }
}

impl Recorder for Counted {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let Some((_, name)) = SHORT.iter().find(|(name, _)| *name == key.name()) else {
            return Counter::noop();
        };
        let words: Vec<&str> = [*name]
            .into_iter()
            .chain(key.labels().map(Label::value))
            .collect();
        let series = Series {
            text: words.join(" "),
            counted: self.clone(),
        };
        Counter::from_arc(Arc::new(series))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

struct Series {
    text: String,
    counted: Counted,
}

impl CounterFn for Series {
    fn increment(&self, value: u64) {
        let mut counts = self.counted.0.lock().unwrap();
        counts.extend((0..value).map(|_| self.text.clone()));
    }

    fn absolute(&self, value: u64) {
        unreachable!("a transaction counter is only incremented, but was set to {value}");
    }
}
