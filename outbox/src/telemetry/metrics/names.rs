//! Every metric of this library. A test compares this list with the table in `docs/metrics.md`, the
//! dashboard and the alerts.

use ::metrics::Unit::{Count, Seconds};

use crate::telemetry::metrics::metric::{
    Kind::{Counter, Gauge, Histogram},
    Metric,
};

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal $unit:ident $labels:tt $help:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $help)]
            pub const $constant: Metric = Metric {
                name: $name,
                kind: $kind,
                unit: $unit,
                labels: &$labels,
                help: $help,
            };
        )*

        /// All metrics.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    ATTEMPTS = Counter "outbox_attempts_total" Count ["handler", "outcome"]
        "Invocations of handlers that ended, by what became of them.";
    RETRIES = Counter "outbox_retries_total" Count ["handler"]
        "Of these, the ones that were not the first attempt at their record.";
    FAILED_ATTEMPTS = Counter "outbox_failed_attempts_total" Count ["handler", "cause"]
        "Of these, the ones that failed, by the kind of failure.";
    PERMANENT_FAILURES = Counter "outbox_permanent_failures_total" Count ["handler", "cause"]
        "Records that a handler failed for good, by why there is no retry.";
    HANDLER_DURATION = Histogram "outbox_handler_duration_seconds" Seconds ["handler"]
        "How long an invocation took.";
    DELIVERY_LATENCY = Histogram "outbox_delivery_latency_seconds" Seconds ["handler"]
        "From the publishing of a record, by the database's clock, until a handler was done with it.";

    COMPLETIONS = Counter "outbox_completions_total" Count []
        "Records, and deliveries of single handlers, that were written as done.";
    BATCH_SIZE = Histogram "outbox_batch_size" Count []
        "How many changes were written at once.";
    UNHANDLED_EVENTS = Counter "outbox_unhandled_events_total" Count ["event"]
        "Records that became unhandled because no handler of this process takes their event.";
    LATE_COMMITS = Counter "outbox_late_commits_total" Count []
        "Records that were committed after later ones had been read, and found.";
    WAKE_UPS = Counter "outbox_wake_ups_total" Count ["cause"]
        "What made the dispatcher look for something to do.";
    LEASE_LOSSES = Counter "outbox_lease_losses_total" Count []
        "Partitions that were lost to others, or to a lease that ran out, without being handed over.";
    DATABASE_ERRORS = Counter "outbox_database_errors_total" Count ["operation"]
        "Statements of the dispatcher that failed; each is tried again.";

    PARTITIONS_OWNED = Gauge "outbox_partitions_owned" Count []
        "Partitions that this process owns.";
    PARTITIONS_UNOWNED = Gauge "outbox_partitions_unowned" Count []
        "Partitions that nobody owns, at the last look.";
    INSTANCES = Gauge "outbox_instances" Count []
        "Processes that run a dispatcher, at the last look.";
    IN_MEMORY = Gauge "outbox_records_in_memory" Count []
        "Records and deliveries that this process has in memory.";
    RUNNING = Gauge "outbox_handlers_running" Count []
        "Invocations that run in this process, or are about to.";

    RECORDS = Gauge "outbox_records" Count ["status"]
        "Records, and deliveries of single handlers, by what they wait for; an estimate where there are many.";
    OLDEST_PENDING_AGE = Gauge "outbox_oldest_pending_age_seconds" Seconds []
        "How long ago the oldest pending record was published; 0 if none is pending.";
    BLOCKED_LANES = Gauge "outbox_blocked_lanes" Count ["cause"]
        "Lanes that wait behind a record that failed; an estimate where there are many.";

    TRANSACTION_RETRIES = Counter "outbox_transaction_retry_attempts_total" Count ["operation", "reason"]
        "Transactions that were to be tried once more.";
    TRANSACTION_EXHAUSTED = Counter "outbox_transaction_retry_exhausted_total" Count ["operation", "reason"]
        "Transactions that could have been retried, and were not any more.";
    TRANSACTION_SUCCESSES = Counter "outbox_transaction_retry_success_total" Count ["operation", "attempts"]
        "Transactions that succeeded after more than one attempt.";
    TRANSACTION_DEADLOCKS = Counter "outbox_transaction_deadlocks_total" Count ["operation"]
        "Attempts that ended in a deadlock.";
    TRANSACTION_SERIALIZATION_FAILURES = Counter "outbox_transaction_serialization_failures_total" Count ["operation"]
        "Attempts that ended because what they had read has changed.";
    TRANSACTION_LOCK_TIMEOUTS = Counter "outbox_transaction_lock_timeouts_total" Count ["operation"]
        "Attempts that did not get a lock in time.";
    TRANSACTION_SKIPPED = Counter "outbox_transaction_retry_skipped_deadline_total" Count ["operation"]
        "Transactions that were not retried because there was no time left.";
}
