//! [`TxRetry`]: which failures of a transaction are retried, how often and when.

use std::{collections::HashSet, error::Error, fmt, sync::Arc, time::Duration};

use super::{Budget, Circuit, Reason};
use crate::retry::{Random, ThreadRandom, backoff, between};

type Classify = Arc<dyn Fn(&(dyn Error + 'static)) -> Option<Reason> + Send + Sync>;

/// Which failures of a transaction are retried, how often and when. Start from one of three
/// presets.
///
/// | | `interactive` | `background` | `publish` |
/// |---|---|---|---|
/// | attempts | 3 | 5 | 2 |
/// | delay, doubling | 50 ms to 200 ms | 100 ms to 5 s | 100 ms to 1 s |
/// | shortest useful time for an attempt | 50 ms | 500 ms | 100 ms |
/// | longest time of an attempt | 5 s | 60 s | 10 s |
/// | an attempt that took longer is retried | no | yes | yes |
///
/// The delay is random between its half and its whole, so that transactions that failed together
/// do not retry together. [`Reason`] lists which failures are retried.
///
/// ```
/// use std::time::Duration;
/// use outbox::transaction::{Reason, TxRetry};
///
/// let policy = TxRetry::interactive()
///     .max_attempts(2)
///     .retry_on(Reason::LockTimeout)
///     .classify(|error| error.is::<std::fmt::Error>().then_some(Reason::Transient));
/// assert!(policy.retries(Reason::LockTimeout));
/// assert!(!policy.retries(Reason::UniqueViolation));
/// ```
#[derive(Clone)]
#[must_use = "a policy has no effect until a transaction uses it"]
pub struct TxRetry {
    pub(super) max_attempts: u32,
    base_delay: Duration,
    max_delay: Duration,
    pub(super) min_attempt: Duration,
    pub(super) attempt_timeout: Option<Duration>,
    retried: HashSet<Reason>,
    classify: Option<Classify>,
    pub(super) budget: Budget,
    pub(super) circuit: Option<Circuit>,
    random: Arc<dyn Random>,
}

impl TxRetry {
    /// For an operation whose caller waits: few attempts, short delays, and only after conflicts
    /// that the database resolved by ending this transaction.
    pub fn interactive() -> Self {
        Self {
            max_attempts: 3,
            base_delay: Duration::from_millis(50),
            max_delay: Duration::from_millis(200),
            min_attempt: Duration::from_millis(50),
            attempt_timeout: Some(Duration::from_secs(5)),
            retried: HashSet::from([
                Reason::Deadlock,
                Reason::SerializationFailure,
                Reason::Busy,
                Reason::Transient,
            ]),
            classify: None,
            budget: Budget::default(),
            circuit: Some(Circuit::default()),
            random: Arc::new(ThreadRandom),
        }
    }

    /// For an operation without a waiting caller: more attempts, longer delays, and also after a
    /// lost connection, a lock timeout or an attempt that took too long. Use it for one step of a job, not for the whole job.
    pub fn background() -> Self {
        let policy = Self {
            max_attempts: 5,
            base_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(5),
            min_attempt: Duration::from_millis(500),
            attempt_timeout: Some(Duration::from_secs(60)),
            ..Self::interactive()
        };
        policy
            .retry_on(Reason::ConnectionLost)
            .retry_on(Reason::LockTimeout)
            .retry_on(Reason::AttemptTimeout)
    }

    /// For storing that something was sent to another service: few attempts, because the sender
    /// retries by itself over minutes and hours, as a handler of an outbox does.
    pub fn publish() -> Self {
        Self {
            max_attempts: 2,
            max_delay: Duration::from_secs(1),
            min_attempt: Duration::from_millis(100),
            attempt_timeout: Some(Duration::from_secs(10)),
            ..Self::background()
        }
    }

    /// One attempt and no retry.
    pub fn never() -> Self {
        Self::interactive().max_attempts(1)
    }

    /// The number of attempts, including the first; at least 1.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts.max(1);
        self
    }

    /// The delay before the second attempt. It doubles before each later attempt.
    pub fn base_delay(mut self, delay: Duration) -> Self {
        self.base_delay = delay;
        self
    }

    /// The longest delay.
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// The shortest useful time for an attempt. If less is left until the deadline, none starts.
    pub fn min_attempt(mut self, time: Duration) -> Self {
        self.min_attempt = time;
        self
    }

    /// The longest time of one attempt, from the request for a connection until the commit is sent;
    /// `None` for no limit. An attempt that takes longer is rolled back and fails with
    /// [`Reason::AttemptTimeout`], or with [`Reason::PoolTimeout`] if it got no connection.
    ///
    /// The statement that runs at that moment ends on the server too, and its locks are free: the
    /// library cancels it from another connection (PostgreSQL: `pg_cancel_backend`; MySQL and MariaDB:
    /// `kill query`), an idle one of the pool or a new one. On SQLite it lowers the busy timeout while
    /// the transaction waits for its lock, and ends a later statement by a progress handler. The same
    /// happens at the [`Deadline`](super::Deadline), when the caller cancels, and when the future of
    /// `run` is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use outbox::transaction::{Reason, TxRetry};
    ///
    /// // A step of a job that may wait for locks for 20 s, and is then tried again.
    /// let step = TxRetry::background().attempt_timeout(Duration::from_secs(20));
    /// assert!(step.retries(Reason::AttemptTimeout));
    /// let unlimited = step.attempt_timeout(None);
    /// # let _ = unlimited;
    /// ```
    pub fn attempt_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.attempt_timeout = timeout.into();
        self
    }

    /// Retries failures of this reason. [`Reason::CommitUnknown`] is retried with a command id
    /// only, whatever the policy says.
    pub fn retry_on(mut self, reason: Reason) -> Self {
        self.retried.insert(reason);
        self
    }

    /// Does not retry failures of this reason.
    pub fn no_retry_on(mut self, reason: Reason) -> Self {
        self.retried.remove(&reason);
        self
    }

    /// Classifies an error before the default classification does; `None` leaves it to the
    /// default. It gets the error of the closure, or that of the database if it occurred outside
    /// of the closure. It is not called for a commit of unknown outcome.
    pub fn classify(
        mut self,
        classify: impl Fn(&(dyn Error + 'static)) -> Option<Reason> + Send + Sync + 'static,
    ) -> Self {
        self.classify = Some(Arc::new(classify));
        self
    }

    /// The number of retries that all calls of one operation share.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// When attempts are refused because the database is unreachable; `None` for never.
    pub fn circuit(mut self, circuit: impl Into<Option<Circuit>>) -> Self {
        self.circuit = circuit.into();
        self
    }

    /// The source of random numbers for the delays.
    pub fn random(mut self, random: impl Random + 'static) -> Self {
        self.random = Arc::new(random);
        self
    }

    /// Whether failures of this reason are retried, within the limits of time, attempts and budget.
    /// [`Reason::CommitUnknown`] is retried with a command id only, whatever this says.
    #[must_use]
    pub fn retries(&self, reason: Reason) -> bool {
        self.retried.contains(&reason)
    }

    /// A random delay before this attempt, counted from 1. Meaningful from the second on.
    #[must_use]
    pub fn delay_before(&self, attempt: u32) -> Duration {
        let failures = attempt.saturating_sub(1);
        let base = backoff::exponential(self.base_delay, 2.0, self.max_delay, failures);
        between(&*self.random, base / 2, base)
    }

    /// The reason that the caller's own classification gives.
    pub(super) fn own_reason(&self, error: &(dyn Error + 'static)) -> Option<Reason> {
        self.classify.as_ref().and_then(|classify| classify(error))
    }
}

impl fmt::Debug for TxRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TxRetry")
            .field("max_attempts", &self.max_attempts)
            .field("base_delay", &self.base_delay)
            .field("max_delay", &self.max_delay)
            .field("min_attempt", &self.min_attempt)
            .field("attempt_timeout", &self.attempt_timeout)
            .field("retried", &self.retried)
            .field("budget", &self.budget)
            .field("circuit", &self.circuit)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALWAYS: [Reason; 3] = [Reason::Deadlock, Reason::SerializationFailure, Reason::Busy];
    const PATIENT: [Reason; 3] = [
        Reason::ConnectionLost,
        Reason::LockTimeout,
        Reason::AttemptTimeout,
    ];
    const NEVER: [Reason; 14] = [
        Reason::CommitUnknown,
        Reason::StatementTimeout,
        Reason::PoolTimeout,
        Reason::UniqueViolation,
        Reason::ForeignKeyViolation,
        Reason::CheckViolation,
        Reason::NotNullViolation,
        Reason::SyntaxError,
        Reason::MissingObject,
        Reason::PermissionDenied,
        Reason::Aborted,
        Reason::Rejected,
        Reason::Command,
        Reason::Other,
    ];

    #[test]
    fn each_preset_retries_as_documented() {
        let presets = [
            TxRetry::interactive(),
            TxRetry::background(),
            TxRetry::publish(),
        ];
        for (n, preset) in presets.iter().enumerate() {
            assert!(ALWAYS.iter().all(|reason| preset.retries(*reason)));
            assert!(
                PATIENT
                    .iter()
                    .all(|reason| preset.retries(*reason) == (n > 0))
            );
            assert!(!NEVER.iter().any(|reason| preset.retries(*reason)));
        }
    }

    /// The shortest and the longest delay before each of the attempts 2 to 9, in milliseconds.
    fn delays(preset: fn() -> TxRetry) -> [[u128; 8]; 2] {
        [0, u64::MAX].map(|random| {
            let policy = preset().random(move || random);
            [2, 3, 4, 5, 6, 7, 8, 9].map(|attempt| policy.delay_before(attempt).as_millis())
        })
    }

    #[test]
    fn delays_double_from_the_upper_half_of_the_base() {
        let interactive = [
            [25, 50, 100, 100, 100, 100, 100, 100],
            [50, 100, 200, 200, 200, 200, 200, 200],
        ];
        let background = [
            [50, 100, 200, 400, 800, 1600, 2500, 2500],
            [100, 200, 400, 800, 1600, 3200, 5000, 5000],
        ];
        let publish = [
            [50, 100, 200, 400, 500, 500, 500, 500],
            [100, 200, 400, 800, 1000, 1000, 1000, 1000],
        ];
        assert_eq!(delays(TxRetry::interactive), interactive);
        assert_eq!(delays(TxRetry::background), background);
        assert_eq!(delays(TxRetry::publish), publish);
    }

    #[test]
    fn each_preset_has_the_documented_limits() {
        assert_eq!(TxRetry::interactive().circuit, Some(Circuit::default()));
        assert_eq!(TxRetry::background().circuit, Some(Circuit::default()));
        assert_eq!(TxRetry::publish().circuit, Some(Circuit::default()));
        let limits = |preset: TxRetry| {
            let times = [Some(preset.min_attempt), preset.attempt_timeout];
            (
                preset.max_attempts,
                times.map(|time| time.unwrap().as_millis()),
            )
        };
        assert_eq!(limits(TxRetry::interactive()), (3, [50, 5_000]));
        assert_eq!(limits(TxRetry::background()), (5, [500, 60_000]));
        assert_eq!(limits(TxRetry::publish()), (2, [100, 10_000]));
        assert_eq!(limits(TxRetry::never()), (1, [50, 5_000]));
    }
}
