//! [`TxRetry`]: which failures of a transaction are retried, how often and when.

use std::{collections::HashSet, error::Error, fmt, sync::Arc, time::Duration};

use super::{Budget, Reason};
use crate::retry::{Random, ThreadRandom, backoff, between};

type Classify = Arc<dyn Fn(&(dyn Error + 'static)) -> Option<Reason> + Send + Sync>;

/// Which failures of a transaction are retried, how often and when. Start from one of the three
/// tiers: an operation with a waiting user is another thing than a job at night.
///
/// | | `interactive` | `background` | `publish` |
/// |---|---|---|---|
/// | attempts | 3 | 5 | 2 |
/// | delay, doubling | 50 ms to 200 ms | 100 ms to 5 s | 100 ms to 1 s |
/// | least time for an attempt | 50 ms | 500 ms | 100 ms |
///
/// A delay is drawn from the upper half of itself, so that what failed together does not come
/// back together. What is retried: see [`Reason`].
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
#[must_use = "a policy is given to a transaction"]
pub struct TxRetry {
    pub(crate) max_attempts: u32,
    base_delay: Duration,
    max_delay: Duration,
    pub(crate) min_attempt: Duration,
    retried: HashSet<Reason>,
    classify: Option<Classify>,
    pub(crate) budget: Budget,
    random: Arc<dyn Random>,
}

impl TxRetry {
    /// Somebody waits for the answer: few attempts, soon, and only after conflicts that the
    /// database itself resolved.
    pub fn interactive() -> Self {
        Self {
            max_attempts: 3,
            base_delay: Duration::from_millis(50),
            max_delay: Duration::from_millis(200),
            min_attempt: Duration::from_millis(50),
            retried: HashSet::from([
                Reason::Deadlock,
                Reason::SerializationFailure,
                Reason::Busy,
                Reason::Transient,
            ]),
            classify: None,
            budget: Budget::default(),
            random: Arc::new(ThreadRandom),
        }
    }

    /// Nobody waits: more attempts, more patience, and also after a lost connection or a lock
    /// that was not free. For one part of a job, never for all of it.
    pub fn background() -> Self {
        let policy = Self {
            max_attempts: 5,
            base_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(5),
            min_attempt: Duration::from_millis(500),
            ..Self::interactive()
        };
        policy
            .retry_on(Reason::ConnectionLost)
            .retry_on(Reason::LockTimeout)
    }

    /// Notes what was sent to the outside world: few attempts, since whoever sends has a schedule
    /// of its own over minutes and hours, as the handlers of an outbox have.
    pub fn publish() -> Self {
        Self {
            max_attempts: 2,
            max_delay: Duration::from_secs(1),
            min_attempt: Duration::from_millis(100),
            ..Self::background()
        }
    }

    /// One attempt and no retry.
    pub fn never() -> Self {
        Self::interactive().max_attempts(1)
    }

    /// How often it is tried in all; at least once.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts.max(1);
        self
    }

    /// The delay before the second attempt; it doubles with each further one.
    pub fn base_delay(mut self, delay: Duration) -> Self {
        self.base_delay = delay;
        self
    }

    /// The longest delay.
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// The least time that an attempt needs: with less left until the deadline none starts.
    pub fn min_attempt(mut self, time: Duration) -> Self {
        self.min_attempt = time;
        self
    }

    /// This is retried too. It cannot make a commit of unknown outcome safe: that needs a command
    /// id.
    pub fn retry_on(mut self, reason: Reason) -> Self {
        self.retried.insert(reason);
        self
    }

    /// This is not retried.
    pub fn no_retry_on(mut self, reason: Reason) -> Self {
        self.retried.remove(&reason);
        self
    }

    /// What an error means, instead of the default; `None` leaves it at that. It is asked about
    /// what the closure returned, or about the database's error where that came from elsewhere.
    /// It is not asked about a commit of unknown outcome.
    pub fn classify(
        mut self,
        classify: impl Fn(&(dyn Error + 'static)) -> Option<Reason> + Send + Sync + 'static,
    ) -> Self {
        self.classify = Some(Arc::new(classify));
        self
    }

    /// What the callers of one operation have together.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Where the random numbers of the delays come from.
    pub fn random(mut self, random: impl Random + 'static) -> Self {
        self.random = Arc::new(random);
        self
    }

    /// Whether this is retried, given time and attempts. A commit of unknown outcome is where
    /// there is a command id, whatever this says.
    #[must_use]
    pub fn retries(&self, reason: Reason) -> bool {
        self.retried.contains(&reason)
    }

    /// The delay before that attempt; the second is the first that has one.
    #[must_use]
    pub fn delay_before(&self, attempt: u32) -> Duration {
        let failures = attempt.saturating_sub(1);
        let base = backoff::exponential(self.base_delay, 2.0, self.max_delay, failures);
        between(&*self.random, base / 2, base)
    }

    /// What the caller says that it means.
    pub(crate) fn own_reason(&self, error: &(dyn Error + 'static)) -> Option<Reason> {
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
            .field("retried", &self.retried)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALWAYS: [Reason; 3] = [Reason::Deadlock, Reason::SerializationFailure, Reason::Busy];
    const PATIENT: [Reason; 2] = [Reason::ConnectionLost, Reason::LockTimeout];
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
    fn each_tier_retries_what_its_row_says() {
        let tiers = [
            TxRetry::interactive(),
            TxRetry::background(),
            TxRetry::publish(),
        ];
        for (n, tier) in tiers.iter().enumerate() {
            assert!(ALWAYS.iter().all(|reason| tier.retries(*reason)));
            assert!(
                PATIENT
                    .iter()
                    .all(|reason| tier.retries(*reason) == (n > 0))
            );
            assert!(!NEVER.iter().any(|reason| tier.retries(*reason)));
        }
    }

    #[test]
    fn delays_double_from_the_upper_half_of_the_base() {
        let delays = |random: u64| {
            let policy = TxRetry::interactive().random(move || random);
            [2, 3, 4, 5].map(|attempt| policy.delay_before(attempt).as_millis())
        };
        assert_eq!(delays(0), [25, 50, 100, 100]);
        assert_eq!(delays(u64::MAX), [50, 100, 200, 200]);
    }
}
