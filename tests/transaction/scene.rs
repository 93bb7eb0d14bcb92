//! The scene of these tests: a clock that does not wait, readable counters, and planned failures.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;
use metrics::LocalRecorderGuard;
use outbox::{
    Database,
    clock::{Clock, ManualClock},
    transaction::{Budget, Reason, Transactions, TxRetry},
};
use outbox_tests::database::Fresh;

use crate::recorder::Counted;

type Sleep<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A clock whose `sleep` returns at once: it advances by the time and keeps a list of the times.
#[derive(Debug, Clone, Default)]
pub(crate) struct FastClock {
    clock: ManualClock,
    slept: Arc<Mutex<Vec<Duration>>>,
}

impl FastClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    pub(crate) fn slept(&self) -> Vec<Duration> {
        self.slept.lock().unwrap().clone()
    }
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn sleep(&self, time: Duration) -> Sleep<'_> {
        self.slept.lock().unwrap().push(time);
        self.clock.advance(time);
        Box::pin(tokio::task::yield_now())
    }
}

/// A clock whose sleep never ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndlessSleep;

impl Clock for EndlessSleep {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn sleep(&self, _: Duration) -> Sleep<'_> {
        Box::pin(std::future::pending())
    }
}

/// The transactions of one test, their clock and their counters.
pub(crate) struct Scene<Db: Database> {
    pub(crate) transactions: Transactions<Db>,
    pub(crate) clock: FastClock,
    pub(crate) counted: Counted,
    _recorder: LocalRecorderGuard<'static>,
}

impl<Db: Database> Scene<Db> {
    pub(crate) fn of(db: &Fresh<Db>) -> Self {
        Self::on(db.pool.clone())
    }

    pub(crate) fn on(pool: sqlx::Pool<Db>) -> Self {
        let (clock, counted) = (FastClock::default(), Counted::default());
        Self {
            transactions: Transactions::new(pool).clock(clock.clone()),
            clock,
            _recorder: counted.install(),
            counted,
        }
    }
}

/// The errors of the closures in these tests.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Oops {
    #[error("a simulated deadlock")]
    Deadlock,
    #[error("a business rule refuses")]
    No,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Outbox(#[from] outbox::Error),
}

/// A policy that classifies [`Oops::Deadlock`] as a deadlock. Its delays have no jitter.
pub(crate) fn policy() -> TxRetry {
    TxRetry::interactive()
        .random(|| u64::MAX)
        .classify(|error| {
            matches!(error.downcast_ref(), Some(Oops::Deadlock)).then_some(Reason::Deadlock)
        })
}

/// A policy for many conflicts: it retries until the transaction succeeds.
pub(crate) fn stubborn() -> TxRetry {
    TxRetry::background()
        .max_attempts(100_000)
        .base_delay(Duration::from_micros(10))
        .max_delay(Duration::from_millis(5))
        .budget(Budget::new(u32::MAX, 1.0, 1_000_000))
}
