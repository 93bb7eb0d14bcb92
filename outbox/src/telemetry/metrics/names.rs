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
        "Invocations of handlers that ended, by outcome.";
    RETRIES = Counter "outbox_retries_total" Count ["handler"]
        "Invocations that were not the first attempt at their record.";
    FAILED_ATTEMPTS = Counter "outbox_failed_attempts_total" Count ["handler", "cause"]
        "Invocations that failed, by the kind of failure.";
    PERMANENT_FAILURES = Counter "outbox_permanent_failures_total" Count ["handler", "cause"]
        "Records that failed permanently for a handler, by the reason why there is no retry.";
    FAILURE_HOOKS = Counter "outbox_failure_hooks_total" Count ["result"]
        "Calls of the program's `on_failed`, by result.";
    HANDLER_CONFLICTS = Counter "outbox_handler_conflicts_total" Count ["handler"]
        "Transactions of `Tx` handlers that the database ended in favour of others, and that were repeated at once.";
    HANDLER_DURATION = Histogram "outbox_handler_duration_seconds" Seconds ["handler"]
        "Duration of an invocation.";
    DELIVERY_LATENCY = Histogram "outbox_delivery_latency_seconds" Seconds ["handler"]
        "Time from the publishing of a record, by the database's clock, until a handler completed it.";

    COMPLETIONS = Counter "outbox_completions_total" Count []
        "Records, and deliveries of single handlers, that were written as completed.";
    BATCH_SIZE = Histogram "outbox_batch_size" Count []
        "Number of changes in a batch.";
    UNHANDLED_EVENTS = Counter "outbox_unhandled_events_total" Count ["event"]
        "Records that became unhandled because no handler of this process takes their event.";
    LATE_COMMITS = Counter "outbox_late_commits_total" Count []
        "Records that were committed late, after records with higher ids had been read.";
    WAKE_UPS = Counter "outbox_wake_ups_total" Count ["cause"]
        "Wake-ups of the event loop, by cause.";
    LEASE_LOSSES = Counter "outbox_lease_losses_total" Count []
        "Partitions that were lost without a hand-over: a peer took them, or their lease expired.";
    DATABASE_ERRORS = Counter "outbox_database_errors_total" Count ["operation"]
        "Statements of the dispatcher that failed. Each is retried.";

    PARTITIONS_OWNED = Gauge "outbox_partitions_owned" Count []
        "Partitions that this process owns.";
    PARTITIONS_UNOWNED = Gauge "outbox_partitions_unowned" Count []
        "Partitions without an owner, at the last claim.";
    INSTANCES = Gauge "outbox_instances" Count []
        "Processes that run a dispatcher, at the last claim.";
    IN_MEMORY = Gauge "outbox_records_in_memory" Count []
        "Records and deliveries in the memory of this process.";
    RUNNING = Gauge "outbox_handlers_running" Count []
        "Invocations that run in this process, or are about to start.";

    RECORDS = Gauge "outbox_records" Count ["status"]
        "Records, and deliveries of single handlers, by status; an estimate where there are many.";
    OLDEST_PENDING_AGE = Gauge "outbox_oldest_pending_age_seconds" Seconds []
        "Time since the oldest pending record was published; 0 if none is pending.";
    BLOCKED_LANES = Gauge "outbox_blocked_lanes" Count ["cause"]
        "Lanes that wait behind a record that failed; an estimate where there are many.";

    TRANSACTIONS = Counter "outbox_transactions_total" Count ["operation", "outcome", "reason"]
        "Calls of transactions that ended, by outcome, and by the reason of the last failure.";
    TRANSACTION_RETRIES = Counter "outbox_transaction_retry_attempts_total" Count ["operation", "reason"]
        "Retries of transactions, by the reason of the failure.";
    TRANSACTION_EXHAUSTED = Counter "outbox_transaction_retry_exhausted_total" Count ["operation", "reason"]
        "Transactions that failed with a retryable error after which a limit forbade another attempt.";
    TRANSACTION_SUCCESSES = Counter "outbox_transaction_retry_success_total" Count ["operation", "attempts"]
        "Transactions that succeeded after more than one attempt.";
    TRANSACTION_DEADLOCKS = Counter "outbox_transaction_deadlocks_total" Count ["operation"]
        "Attempts that ended in a deadlock.";
    TRANSACTION_SERIALIZATION_FAILURES = Counter "outbox_transaction_serialization_failures_total" Count ["operation"]
        "Attempts that ended because rows that they had read have changed.";
    TRANSACTION_LOCK_TIMEOUTS = Counter "outbox_transaction_lock_timeouts_total" Count ["operation"]
        "Attempts that did not get a lock in time.";
    TRANSACTION_SKIPPED = Counter "outbox_transaction_retry_skipped_deadline_total" Count ["operation"]
        "Transactions that were not retried because there was no time left.";
    TRANSACTION_CIRCUIT_OPEN = Gauge "outbox_transaction_circuit_open" Count []
        "1 while transactions of this process are refused because the database is unreachable, else 0.";
}
