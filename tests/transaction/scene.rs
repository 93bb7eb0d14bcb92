//! Time that passes at once, counters that can be read, and failures on demand.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use outbox::{
    Database,
    clock::ManualClock,
    transaction::{Budget, Observer, Reason, Sleeper, Transactions, TxRetry},
};
use outbox_tests::database::Fresh;

/// Does not sleep: the clock is moved, and what was asked for is kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Naps {
    pub(crate) clock: ManualClock,
    slept: Arc<Mutex<Vec<Duration>>>,
}

impl Naps {
    pub(crate) fn slept(&self) -> Vec<Duration> {
        self.slept.lock().unwrap().clone()
    }
}

impl Sleeper for Naps {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.slept.lock().unwrap().push(time);
        self.clock.advance(time);
        Box::pin(tokio::task::yield_now())
    }
}

/// Never wakes up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forever;

impl Sleeper for Forever {
    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }
}

/// What was counted, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted(Arc<Mutex<Vec<String>>>);

impl Counted {
    fn push(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn of(&self, text: &str) -> usize {
        self.all()
            .iter()
            .filter(|one| one.starts_with(text))
            .count()
    }
}

impl Observer for Counted {
    fn retry(&self, operation: &'static str, reason: Reason) {
        self.push(format!("retry {operation} {reason}"));
    }

    fn exhausted(&self, operation: &'static str, reason: Reason) {
        self.push(format!("exhausted {operation} {reason}"));
    }

    fn success_after_retry(&self, operation: &'static str, attempts: u32) {
        self.push(format!("success {operation} {attempts}"));
    }

    fn deadlock(&self, operation: &'static str) {
        self.push(format!("deadlock {operation}"));
    }

    fn serialization_failure(&self, operation: &'static str) {
        self.push(format!("serialization_failure {operation}"));
    }

    fn lock_timeout(&self, operation: &'static str) {
        self.push(format!("lock_timeout {operation}"));
    }

    fn skipped_deadline(&self, operation: &'static str) {
        self.push(format!("skipped_deadline {operation}"));
    }
}

/// One test's transactions, with everything that can be looked at.
pub(crate) struct Scene<Db: Database> {
    pub(crate) transactions: Transactions<Db>,
    pub(crate) naps: Naps,
    pub(crate) counted: Counted,
}

impl<Db: Database> Scene<Db> {
    pub(crate) fn of(db: &Fresh<Db>) -> Self {
        Self::on(db.pool.clone())
    }

    pub(crate) fn on(pool: sqlx::Pool<Db>) -> Self {
        let (naps, counted) = (Naps::default(), Counted::default());
        let transactions = Transactions::new(pool)
            .clock(naps.clock.clone())
            .sleeper(naps.clone())
            .observer(counted.clone());
        Self {
            transactions,
            naps,
            counted,
        }
    }
}

/// What a closure of these tests fails with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Oops {
    #[error("as if there had been a deadlock")]
    Deadlock,
    #[error("the business says no")]
    No,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Outbox(#[from] outbox::Error),
}

/// Takes [`Oops::Deadlock`] for one.
pub(crate) fn policy() -> TxRetry {
    TxRetry::interactive()
        .random(|| u64::MAX)
        .classify(|error| {
            matches!(error.downcast_ref(), Some(Oops::Deadlock)).then_some(Reason::Deadlock)
        })
}

/// For storms: what counts is that everybody comes through.
pub(crate) fn stubborn() -> TxRetry {
    TxRetry::background()
        .max_attempts(100_000)
        .base_delay(Duration::from_micros(10))
        .max_delay(Duration::from_millis(5))
        .budget(Budget::new(u32::MAX, 1.0, 1_000_000))
}
