#![doc = include_str!("../../../docs/metrics.md")]

mod metric;
pub mod names;
pub(crate) mod transactions;

pub use metric::{Kind, Metric};

/// Histogram buckets for metrics in seconds: 0.5 ms to 10 minutes.
pub const SECONDS_BUCKETS: [f64; 19] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 120.0, 300.0, 600.0,
];

/// Histogram buckets for the size of batches.
pub const SIZE_BUCKETS: [f64; 9] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 2048.0, 4096.0, 16384.0];

/// Whether a recorder is installed. The no-op recorder is zero-sized, and the `metrics` facade has
/// no better test. A real recorder that is zero-sized misses only the metrics that are expensive to
/// compute.
pub(crate) fn is_recorded() -> bool {
    ::metrics::with_recorder(|recorder| size_of_val(recorder) > 0)
}

/// Describes every metric to the installed recorder. [`Outbox::start`](crate::outbox::Outbox::start)
/// calls this. Call it in a program that uses [transactions](crate::transaction) only.
///
/// ```
/// outbox::metrics::describe();
/// ```
pub fn describe() {
    names::ALL.iter().for_each(Metric::describe);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_match_kind_and_unit() {
        let mut seen = HashSet::new();
        for metric in names::ALL {
            assert!(seen.insert(metric.name), "{}", metric.name);
            assert!(metric.name.starts_with("outbox_"), "{}", metric.name);
            assert!(metric.help.ends_with('.'), "{}", metric.name);
            let is_total = metric.name.ends_with("_total");
            assert_eq!(is_total, metric.kind == Kind::Counter, "{}", metric.name);
            let is_time = metric.name.ends_with("_seconds");
            let seconds = metric.unit == ::metrics::Unit::Seconds;
            assert_eq!(is_time, seconds, "{}", metric.name);
        }
    }

    #[test]
    fn an_installed_recorder_is_noticed() {
        assert!(!is_recorded());
        let counts: Box<dyn ::metrics::Recorder> = Box::new(::metrics::NoopRecorder);
        ::metrics::with_local_recorder(&counts, || assert!(is_recorded()));
    }

    #[test]
    fn no_label_can_have_many_values() {
        let few = [
            "handler",
            "outcome",
            "cause",
            "event",
            "status",
            "operation",
            "reason",
            "attempts",
            "result",
        ];
        for metric in names::ALL {
            let allowed = metric.labels.iter().all(|label| few.contains(label));
            assert!(allowed, "{} {:?}", metric.name, metric.labels);
        }
    }
}
