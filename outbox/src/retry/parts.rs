//! [`RetryParts`]: some parts of a policy. The others come from a weaker place.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use humantime::format_duration as words;
use serde::Serialize;

use super::{
    Jitter, PolicyError, Retry, RetryBuilder, RetryPolicy, ThreadRandom,
    curve::Curve,
    filter::{ErrorType, Filter},
    random::between,
};
use crate::handler::HandlerError;

/// A part of a retry policy. `#[retryable(..)]` may set some of them; a handler has the others from
/// the next weaker place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PolicyPart {
    /// How many retries there are.
    MaxRetries,
    /// How the delay grows.
    Backoff,
    /// How the delay is spread at random.
    Jitter,
    /// The time within which retries start.
    MaxElapsed,
    /// Which errors are retried. All rules together are one part.
    Rules,
}

impl PolicyPart {
    pub(crate) const ALL: [Self; 5] = [
        Self::MaxRetries,
        Self::Backoff,
        Self::Jitter,
        Self::MaxElapsed,
        Self::Rules,
    ];
}

impl fmt::Display for PolicyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MaxRetries => "max retries",
            Self::Backoff => "back-off",
            Self::Jitter => "jitter",
            Self::MaxElapsed => "max elapsed",
            Self::Rules => "rules",
        })
    }
}

/// The parts that an inline `#[retryable(..)]` sets. Generated code calls the methods, which are those of
/// [`RetryBuilder`].
#[derive(Clone, Default)]
#[must_use = "parts do nothing by themselves"]
pub struct RetryParts {
    pub(super) max_retries: Option<u32>,
    pub(super) curve: Option<Curve>,
    pub(super) jitter: Option<Jitter>,
    pub(super) max_elapsed: Option<Duration>,
    pub(super) filter: Option<Filter>,
}

#[expect(missing_docs, reason = "as the methods of `RetryBuilder`")]
impl RetryParts {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn max_retries(mut self, n: u32) -> Self {
        self.max_retries = Some(n);
        self
    }

    pub fn fixed(mut self, delay: Duration) -> Self {
        self.curve = Some(Curve::Fixed(delay));
        self
    }

    pub fn linear(mut self, initial: Duration, increment: Duration, max: Duration) -> Self {
        let by = increment;
        self.curve = Some(Curve::Linear { initial, by, max });
        self
    }

    pub fn exponential(mut self, initial: Duration, multiplier: f64, max: Duration) -> Self {
        let by = multiplier;
        self.curve = Some(Curve::Exponential { initial, by, max });
        self
    }

    pub fn jitter(mut self, jitter: impl Into<Jitter>) -> Self {
        self.jitter = Some(jitter.into());
        self
    }

    pub fn max_elapsed(mut self, limit: Duration) -> Self {
        self.max_elapsed = Some(limit);
        self
    }

    pub fn retry_on<E: Error + 'static>(mut self) -> Self {
        self.rules().only.push(ErrorType::of::<E>());
        self
    }

    pub fn no_retry_on<E: Error + 'static>(mut self) -> Self {
        self.rules().never.push(ErrorType::of::<E>());
        self
    }

    pub fn retry_if(
        mut self,
        predicate: impl Fn(&HandlerError) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.rules().predicates.push(Arc::new(predicate));
        self
    }

    fn rules(&mut self) -> &mut Filter {
        self.filter.get_or_insert_default()
    }
}

impl RetryParts {
    pub(crate) fn has(&self, part: PolicyPart) -> bool {
        match part {
            PolicyPart::MaxRetries => self.max_retries.is_some(),
            PolicyPart::Backoff => self.curve.is_some(),
            PolicyPart::Jitter => self.jitter.is_some(),
            PolicyPart::MaxElapsed => self.max_elapsed.is_some(),
            PolicyPart::Rules => self.filter.is_some(),
        }
    }

    /// The policy with these parts, and with the other parts of `weaker`.
    pub(crate) fn over(
        self,
        weaker: Arc<dyn RetryPolicy>,
    ) -> Result<Arc<dyn RetryPolicy>, PolicyError> {
        if let Some(retry) = weaker.as_retry() {
            return Ok(Arc::new(retry.to_builder().with(self).build()?));
        }
        // Checks the parts. The values that are not used are valid.
        Retry::builder().with(self.clone()).build()?;
        Ok(Arc::new(Refined {
            parts: self,
            weaker,
        }))
    }
}

impl RetryBuilder {
    /// Replaces the parts that are set.
    fn with(mut self, parts: RetryParts) -> Self {
        let RetryParts {
            max_retries,
            curve,
            jitter,
            max_elapsed,
            filter,
        } = parts;
        self.max_retries = max_retries.unwrap_or(self.max_retries);
        self.curve = curve.unwrap_or(self.curve);
        self.jitter = jitter.unwrap_or(self.jitter);
        self.max_elapsed = max_elapsed.or(self.max_elapsed);
        self.filter = filter.unwrap_or(self.filter);
        self
    }
}

/// Some parts over a policy that is not a [`Retry`]: a type of the user.
struct Refined {
    parts: RetryParts,
    weaker: Arc<dyn RetryPolicy>,
}

impl RetryPolicy for Refined {
    fn should_retry(&self, error: &HandlerError) -> bool {
        let rules = self.parts.filter.as_ref();
        rules.map_or_else(|| self.weaker.should_retry(error), |own| own.allows(error))
    }

    fn next_delay(&self, failure_count: u32) -> Duration {
        let (parts, weaker) = (&self.parts, &self.weaker);
        let base = |failure_count| match parts.curve {
            Some(curve) => curve.delay(failure_count),
            None => weaker.next_delay(failure_count),
        };
        match parts.jitter {
            // The user's policy spreads its own delays, if it does.
            None => base(failure_count),
            Some(jitter) => {
                let longest = parts.curve.map_or(Duration::MAX, Curve::max);
                let (low, high) = jitter.interval(failure_count, base, longest);
                between(&ThreadRandom, low, high)
            }
        }
    }

    fn max_retries(&self) -> u32 {
        let own = self.parts.max_retries;
        own.unwrap_or_else(|| self.weaker.max_retries())
    }

    fn max_elapsed(&self) -> Option<Duration> {
        self.parts.max_elapsed.or_else(|| self.weaker.max_elapsed())
    }

    fn describe(&self) -> String {
        let parts = &self.parts;
        let mut text = vec![format!("max {} retries", self.max_retries())];
        text.extend(parts.curve.map(|curve| curve.to_string()));
        text.extend(parts.jitter.map(|jitter| jitter.to_string()));
        let limit = parts
            .max_elapsed
            .map(|limit| format!("within {}", words(limit)));
        text.extend(limit);
        let rules = parts.filter.as_ref().map(ToString::to_string);
        let rules = rules.unwrap_or_default();
        format!(
            "{}{rules}, otherwise {}",
            text.join(", "),
            self.weaker.describe()
        )
    }
}

impl fmt::Debug for RetryParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = PolicyPart::ALL.iter().filter(|part| self.has(**part));
        f.debug_list().entries(named).finish()
    }
}
