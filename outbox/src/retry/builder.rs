//! [`Retry`], the ready-made policy, and [`RetryBuilder`].

use std::{error::Error, fmt, sync::Arc, time::Duration};

use humantime::format_duration as words;

use super::{
    Jitter, PolicyDuration, PolicyError, Random, RetryPolicy, ThreadRandom,
    backoff::Backoff,
    curve::Curve,
    defaults,
    filter::{ErrorType, Filter},
    names::Unresolved,
    random::between,
};
use crate::handler::HandlerError;

/// A retry policy made of a back-off, a jitter, limits, and rules for error types.
///
/// ```
/// use std::{io, time::Duration};
/// use outbox::{Retry, RetryPolicy};
///
/// let retry = Retry::builder()
///     .max_retries(5)
///     .exponential(Duration::from_secs(10), 2.0, Duration::from_secs(300))
///     .jitter(Duration::from_secs(2))
///     .retry_on::<io::Error>()
///     .no_retry_on::<std::num::ParseIntError>()
///     .build()?;
///
/// let third = retry.next_delay(3);
/// assert!(Duration::from_secs(38) <= third && third <= Duration::from_secs(42));
/// # Ok::<(), outbox::retry::PolicyError>(())
/// ```
///
/// `Retry::default()` has the values with which [`builder`](Self::builder) starts. A handler for which no
/// policy is set anywhere uses another one. The module [`defaults`] has all of these numbers.
#[derive(Clone)]
pub struct Retry {
    settings: RetryBuilder,
}

impl Retry {
    /// Starts with [`MAX_RETRIES`](defaults::MAX_RETRIES), a fixed delay of
    /// [`FIXED_DELAY`](defaults::FIXED_DELAY), no jitter, and retries after any error.
    pub const fn builder() -> RetryBuilder {
        RetryBuilder {
            max_retries: defaults::MAX_RETRIES,
            curve: Curve::Fixed(defaults::FIXED_DELAY),
            custom: None,
            jitter: Jitter::None,
            filter: Filter::new(),
            max_elapsed: None,
            random: None,
            unresolved: Vec::new(),
            mistake: None,
        }
    }

    /// A builder with the values of this policy, to change some of them.
    pub fn to_builder(&self) -> RetryBuilder {
        self.settings.clone()
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            settings: Self::builder(),
        }
    }
}

/// Builds a [`Retry`]. A later call of a method replaces an earlier one, except for the rules for
/// error types, which accumulate.
///
/// The back-off and the limits are `const fn`. A builder can therefore be a constant, and a constant
/// builder can be the policy of a handler:
///
/// ```
/// # use std::time::Duration;
/// # use outbox::{outbox_handler, retryable, OutboxEvent, Retry, RetryBuilder};
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created")]
/// # struct OrderCreated {}
/// const BANK: RetryBuilder = Retry::builder().max_retries(9).fixed(Duration::from_secs(30));
///
/// #[outbox_handler]
/// #[retryable(policy = BANK)]
/// async fn charge_card(event: OrderCreated) {}
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct RetryBuilder {
    pub(super) max_retries: u32,
    pub(super) curve: Curve,
    /// Used while `curve` is `Custom`. It is not a field of that variant, because a `const fn` that
    /// sets `curve` may not drop an `Arc`.
    custom: Option<Arc<dyn Backoff>>,
    pub(super) jitter: Jitter,
    pub(super) filter: Filter,
    pub(super) max_elapsed: Option<Duration>,
    random: Option<Arc<dyn Random>>,
    /// Names of a configuration whose error types are not known yet.
    pub(super) unresolved: Vec<Unresolved>,
    /// The first mistake found before `build`, which returns it as its error.
    mistake: Option<PolicyError>,
}

impl RetryBuilder {
    /// At most `n` retries, which is `n + 1` invocations. With 0 there is one invocation.
    pub const fn max_retries(mut self, n: u32) -> Self {
        self.max_retries = n;
        self
    }

    /// The same delay after every failure.
    pub const fn fixed(mut self, delay: Duration) -> Self {
        self.curve = Curve::Fixed(delay);
        self
    }

    /// The delay is `initial` after the first failure and grows by `increment` with each further
    /// failure, up to `max`.
    pub const fn linear(mut self, initial: Duration, increment: Duration, max: Duration) -> Self {
        let by = increment;
        self.curve = Curve::Linear { initial, by, max };
        self
    }

    /// The delay is `initial` after the first failure and is multiplied by `multiplier` with each
    /// further failure, up to `max`.
    pub const fn exponential(mut self, initial: Duration, multiplier: f64, max: Duration) -> Self {
        let by = multiplier;
        self.curve = Curve::Exponential { initial, by, max };
        self
    }

    /// Uses a back-off of your own.
    pub fn backoff(mut self, backoff: impl Backoff + 'static) -> Self {
        self.curve = Curve::Custom;
        self.custom = Some(Arc::new(backoff));
        self
    }

    /// Spreads the delays at random. A [`Duration`] means [`Jitter::Around`].
    pub fn jitter(mut self, jitter: impl Into<Jitter>) -> Self {
        self.jitter = jitter.into();
        self
    }

    /// No retry starts more than `limit` after the first failure. Failures of every kind count, also
    /// [`unavailable`](HandlerError::unavailable), which has no other limit.
    pub const fn max_elapsed(mut self, limit: Duration) -> Self {
        self.max_elapsed = Some(limit);
        self
    }

    /// Retries an error of type `E`, and an error whose chain of sources contains one. With this
    /// rule or [`retry_if`](Self::retry_if), errors that no rule names are not retried.
    pub fn retry_on<E: Error + 'static>(mut self) -> Self {
        self.filter.only.push(ErrorType::of::<E>());
        self
    }

    /// Never retries an error of type `E`, nor an error whose chain of sources contains one. This
    /// rule wins over all others.
    pub fn no_retry_on<E: Error + 'static>(mut self) -> Self {
        self.filter.never.push(ErrorType::of::<E>());
        self
    }

    /// Retries an error for which the predicate returns `true`. With this rule or
    /// [`retry_on`](Self::retry_on), errors that no rule names are not retried.
    pub fn retry_if(
        mut self,
        predicate: impl Fn(&HandlerError) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.filter.predicates.push(Arc::new(predicate));
        self
    }

    /// Takes the random numbers for jitter from this source instead of [`ThreadRandom`].
    pub fn random(mut self, random: impl Random + 'static) -> Self {
        self.random = Some(Arc::new(random));
        self
    }

    pub(crate) fn mistaken(mut self, mistake: PolicyError) -> Self {
        self.mistake.get_or_insert(mistake);
        self
    }

    /// Checks the values and makes the policy.
    ///
    /// # Errors
    /// A duration is zero, a multiplier is not above 1.0, the longest delay is below the first one,
    /// or a name in the configuration belongs to no error type.
    pub fn build(self) -> Result<Retry, PolicyError> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        if let Some(unresolved) = self.unresolved.first() {
            return Err(unresolved.name.clone().into());
        }
        self.curve.check()?;
        self.jitter.check()?;
        if self.max_elapsed == Some(Duration::ZERO) {
            return Err(PolicyError::ZeroDuration(PolicyDuration::MaxElapsed));
        }
        Ok(Retry { settings: self })
    }

    fn base(&self, failure_count: u32) -> Duration {
        match (self.curve, &self.custom) {
            (Curve::Custom, Some(custom)) => custom.delay(failure_count),
            (curve, _) => curve.delay(failure_count),
        }
    }
}

impl RetryPolicy for Retry {
    fn should_retry(&self, error: &HandlerError) -> bool {
        self.settings.filter.allows(error)
    }

    fn next_delay(&self, failure_count: u32) -> Duration {
        let settings = &self.settings;
        let base = |failure_count| settings.base(failure_count);
        let (low, high) = (settings.jitter).interval(failure_count, base, settings.curve.max());
        match &settings.random {
            Some(random) => between(&**random, low, high),
            None => between(&ThreadRandom, low, high),
        }
    }

    fn max_retries(&self) -> u32 {
        self.settings.max_retries
    }

    fn max_elapsed(&self) -> Option<Duration> {
        self.settings.max_elapsed
    }

    fn describe(&self) -> String {
        self.to_string()
    }

    fn as_retry(&self) -> Option<&Self> {
        Some(self)
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        let (curve, max_retries) = (settings.curve, settings.max_retries);
        write!(f, "{curve}, max {max_retries} retries")?;
        if settings.jitter != Jitter::None {
            write!(f, ", {}", settings.jitter)?;
        }
        if let Some(limit) = settings.max_elapsed {
            write!(f, ", within {}", words(limit))?;
        }
        write!(f, "{}", settings.filter)
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Retry({self})")
    }
}

impl fmt::Debug for RetryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryBuilder")
            .field("max_retries", &self.max_retries)
            .field("curve", &self.curve)
            .field("jitter", &self.jitter)
            .finish_non_exhaustive()
    }
}
