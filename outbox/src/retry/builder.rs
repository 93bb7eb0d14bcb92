//! [`Retry`]: the ready-made policy, put together by its builder.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use humantime::format_duration as words;

use super::{
    Jitter, PolicyError, Random, RetryPolicy, ThreadRandom,
    backoff::Backoff,
    filter::{ErrorType, Filter},
    jitter::Delays,
    shape::Shape,
};
use crate::handler::HandlerError;

/// A retry policy from a back-off, a jitter, rules over errors and limits.
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
/// `Retry::default()` is the builder's default: 3 retries, 5 s apart, on any error.
#[derive(Clone)]
pub struct Retry {
    settings: RetryBuilder,
}

impl Retry {
    /// Starts from 3 retries, a fixed delay of 5 s, no jitter, any error.
    pub const fn builder() -> RetryBuilder {
        RetryBuilder {
            max_retries: 3,
            shape: Shape::Fixed {
                delay: Duration::from_secs(5),
            },
            custom: None,
            jitter: Jitter::None,
            filter: Filter::new(),
            max_elapsed: None,
            random: None,
            mistake: None,
        }
    }

    /// A builder with this policy's values, to refine them.
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

/// Puts a [`Retry`] together. Each method returns a new builder; the last call of a kind wins,
/// except for the rules over errors, which add up.
///
/// `const` up to the rules over errors, so a builder can be a constant, and a constant builder a policy:
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
    max_retries: u32,
    shape: Shape,
    /// Read while `shape` is `Custom`. Apart from it so that `shape` can be set in a `const fn`,
    /// where nothing may be dropped.
    custom: Option<Arc<dyn Backoff>>,
    jitter: Jitter,
    filter: Filter,
    max_elapsed: Option<Duration>,
    random: Option<Arc<dyn Random>>,
    /// The first thing found wrong before `build`, which reports it.
    mistake: Option<PolicyError>,
}

impl RetryBuilder {
    /// Tries again up to `n` times: `n + 1` invocations in all. 0 means one try.
    pub const fn max_retries(mut self, n: u32) -> Self {
        self.max_retries = n;
        self
    }

    /// The same delay after each failure.
    pub const fn fixed(mut self, delay: Duration) -> Self {
        self.shape = Shape::Fixed { delay };
        self
    }

    /// `initial` after the first failure, `increment` more after each further one, up to `max`.
    pub const fn linear(mut self, initial: Duration, increment: Duration, max: Duration) -> Self {
        self.shape = Shape::Linear {
            initial,
            increment,
            max,
        };
        self
    }

    /// `initial` after the first failure, `multiplier` times as long after each further one, up to `max`.
    pub const fn exponential(mut self, initial: Duration, multiplier: f64, max: Duration) -> Self {
        self.shape = Shape::Exponential {
            initial,
            multiplier,
            max,
        };
        self
    }

    /// A back-off of your own.
    pub fn backoff(mut self, backoff: impl Backoff + 'static) -> Self {
        self.shape = Shape::Custom;
        self.custom = Some(Arc::new(backoff));
        self
    }

    /// Spreads the delays. A [`Duration`] means that much earlier or later.
    pub fn jitter(mut self, jitter: impl Into<Jitter>) -> Self {
        self.jitter = jitter.into();
        self
    }

    /// No retry starts later than this after the first failure.
    pub const fn max_elapsed(mut self, limit: Duration) -> Self {
        self.max_elapsed = Some(limit);
        self
    }

    /// Retries errors of this type, or caused by one. With this or [`retry_if`](Self::retry_if),
    /// nothing else is retried.
    pub fn retry_on<E: Error + 'static>(self) -> Self {
        self.retry_on_type(ErrorType::of::<E>())
    }

    /// Never retries errors of this type, or caused by one, whatever else is said.
    pub fn no_retry_on<E: Error + 'static>(self) -> Self {
        self.no_retry_on_type(ErrorType::of::<E>())
    }

    /// Retries errors that the predicate accepts. With this or [`retry_on`](Self::retry_on),
    /// nothing else is retried.
    pub fn retry_if(
        mut self,
        predicate: impl Fn(&HandlerError) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.filter.predicates.push(Arc::new(predicate));
        self
    }

    /// Draws jitter from this source instead of the thread's generator.
    pub fn random(mut self, random: impl Random + 'static) -> Self {
        self.random = Some(Arc::new(random));
        self
    }

    pub(crate) fn retry_on_type(mut self, ty: ErrorType) -> Self {
        self.filter.only.push(ty);
        self
    }

    pub(crate) fn no_retry_on_type(mut self, ty: ErrorType) -> Self {
        self.filter.never.push(ty);
        self
    }

    pub(crate) fn mistaken(mut self, mistake: PolicyError) -> Self {
        self.mistake.get_or_insert(mistake);
        self
    }

    /// The policy.
    ///
    /// # Errors
    /// When a delay is zero, a multiplier is not above 1.0, a cap is below the first delay, or a
    /// name from the configuration stands for no error type.
    pub fn build(self) -> Result<Retry, PolicyError> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        self.shape.check()?;
        self.jitter.check()?;
        if self.max_elapsed == Some(Duration::ZERO) {
            return Err(PolicyError::ZeroDuration("the longest elapsed time"));
        }
        Ok(Retry { settings: self })
    }

    fn base(&self, failure_count: u32) -> Duration {
        match (self.shape, &self.custom) {
            (Shape::Custom, Some(custom)) => custom.delay(failure_count),
            (shape, _) => shape.delay(failure_count),
        }
    }
}

impl RetryPolicy for Retry {
    fn should_retry(&self, error: &HandlerError) -> bool {
        self.settings.filter.allows(error)
    }

    fn next_delay(&self, failure_count: u32) -> Duration {
        let settings = &self.settings;
        let delays = Delays {
            initial: settings.base(1),
            previous: settings.base(failure_count.saturating_sub(1).max(1)),
            base: settings.base(failure_count.max(1)),
            max: settings.shape.max(),
        };
        match &settings.random {
            Some(random) => settings.jitter.apply(&delays, &**random),
            None => settings.jitter.apply(&delays, &ThreadRandom),
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
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        write!(
            f,
            "{}, max {} retries",
            settings.shape, settings.max_retries
        )?;
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
            .field("shape", &self.shape)
            .field("jitter", &self.jitter)
            .finish_non_exhaustive()
    }
}
