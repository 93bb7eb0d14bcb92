//! [`PolicyConfig`]: one retry policy in a configuration, and its conversion to a [`Retry`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{duration, error_names::ErrorNames, jitter};
use crate::retry::{Jitter, PolicyError, Retry, RetryBuilder};

/// One retry policy: the default policy, directly in the section `retry`, or a named policy in
/// `retry.policies.<name>`.
///
/// A configuration may contain all back-offs; [`policy`](Self::policy) selects one.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PolicyConfig {
    /// The selected back-off. Default: exponential.
    pub policy: PolicyKind,
    /// The number of retries after the first attempt. Default: 3.
    pub max_retries: u32,
    /// How delays are randomised: milliseconds or text such as `"500ms"` (up to 500 ms earlier or
    /// later), a share from 0.0 to 1.0, `full` (or `true`), `equal`, `decorrelated`, `none` (or
    /// `false`), or `"above 500ms"` (up to 500 ms later, never earlier). Default: none.
    #[serde(with = "jitter")]
    pub jitter: Jitter,
    /// No retry starts later than this time after the first failure. Default: no limit.
    #[serde(
        with = "duration::optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_elapsed: Option<Duration>,
    /// For `policy: fixed`.
    pub fixed: FixedConfig,
    /// For `policy: linear`.
    pub linear: LinearConfig,
    /// For `policy: exponential`.
    pub exponential: ExponentialConfig,
    /// For `policy: jittered`. Kept for compatibility.
    pub jittered: JitteredConfig,
    /// Names of error types. If the list is not empty, only these errors are retried.
    pub include_exceptions: Vec<String>,
    /// Names of error types that are not retried.
    pub exclude_exceptions: Vec<String>,
}

/// The back-off of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PolicyKind {
    /// [`PolicyConfig::fixed`].
    Fixed,
    /// [`PolicyConfig::linear`].
    Linear,
    /// [`PolicyConfig::exponential`].
    #[default]
    Exponential,
    /// [`PolicyConfig::jittered`]. Kept for compatibility: use [`PolicyConfig::jitter`].
    Jittered,
}

/// The same delay after each failure.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct FixedConfig {
    /// The delay. Default: 5 s.
    #[serde(with = "duration::millis")]
    pub delay: Duration,
}

/// A delay that grows by the same amount after each failure.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LinearConfig {
    /// The delay after the first failure. Default: 2 s.
    #[serde(with = "duration::millis")]
    pub initial_delay: Duration,
    /// The increase of the delay after each further failure. Default: 2 s.
    #[serde(with = "duration::millis")]
    pub increment: Duration,
    /// The longest delay. Default: 60 s.
    #[serde(with = "duration::millis")]
    pub max_delay: Duration,
}

/// A delay that is multiplied after each failure.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ExponentialConfig {
    /// The delay after the first failure. Default: 1 s.
    #[serde(with = "duration::millis")]
    pub initial_delay: Duration,
    /// The longest delay. Default: 60 s.
    #[serde(with = "duration::millis")]
    pub max_delay: Duration,
    /// The factor of the delay after each further failure; above 1.0. Default: 2.0.
    pub multiplier: f64,
}

/// A base policy whose delays get up to `jitter` longer, never shorter. Kept for compatibility with
/// older configurations: use [`PolicyConfig::jitter`] instead.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct JitteredConfig {
    /// The back-off to which the jitter is added. Default: exponential.
    pub base_policy: BasePolicy,
    /// The longest addition to a delay. Default: 500 ms.
    #[serde(with = "duration::millis")]
    pub jitter: Duration,
}

/// The back-off of a [`JitteredConfig`]. Kept for compatibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BasePolicy {
    /// [`PolicyConfig::fixed`].
    Fixed,
    /// [`PolicyConfig::linear`].
    Linear,
    /// [`PolicyConfig::exponential`].
    #[default]
    Exponential,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            policy: PolicyKind::default(),
            max_retries: 3,
            jitter: Jitter::None,
            max_elapsed: None,
            fixed: FixedConfig::default(),
            linear: LinearConfig::default(),
            exponential: ExponentialConfig::default(),
            jittered: JitteredConfig::default(),
            include_exceptions: Vec::new(),
            exclude_exceptions: Vec::new(),
        }
    }
}

impl Default for FixedConfig {
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(5),
        }
    }
}

impl Default for LinearConfig {
    fn default() -> Self {
        Self {
            initial_delay: Duration::from_secs(2),
            increment: Duration::from_secs(2),
            max_delay: Duration::from_secs(60),
        }
    }
}

impl Default for ExponentialConfig {
    fn default() -> Self {
        Self {
            initial_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
            multiplier: 2.0,
        }
    }
}

impl Default for JitteredConfig {
    fn default() -> Self {
        Self {
            base_policy: BasePolicy::default(),
            jitter: Duration::from_millis(500),
        }
    }
}

impl PolicyConfig {
    /// A builder that starts with these values. It knows the names of common error types.
    /// [`build`](RetryBuilder::build) reports an unknown name.
    ///
    /// ```
    /// use std::time::Duration;
    /// use outbox::{Config, RetryPolicy};
    ///
    /// let config: Config = serde_json::from_str(
    ///     r#"{ "retry": { "policies": { "bank": { "policy": "fixed", "fixed": { "delay": "30s" } } } } }"#,
    /// )?;
    /// let bank = config.retry.policies["bank"].builder().max_retries(9).build()?;
    /// assert_eq!(bank.next_delay(1), Duration::from_secs(30));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(&self) -> RetryBuilder {
        self.builder_with(ErrorNames::built_in())
    }

    /// [`builder`](Self::builder) with the names that the user registered.
    pub(crate) fn builder_with(&self, names: &ErrorNames) -> RetryBuilder {
        let (base, jitter) = match self.policy {
            PolicyKind::Fixed => (BasePolicy::Fixed, self.jitter),
            PolicyKind::Linear => (BasePolicy::Linear, self.jitter),
            PolicyKind::Exponential => (BasePolicy::Exponential, self.jitter),
            PolicyKind::Jittered => {
                let jitter = Jitter::Above(self.jittered.jitter);
                (self.jittered.base_policy, jitter)
            }
        };
        let builder = Retry::builder()
            .max_retries(self.max_retries)
            .jitter(jitter);
        let mut builder = match base {
            BasePolicy::Fixed => builder.fixed(self.fixed.delay),
            BasePolicy::Linear => {
                let linear = &self.linear;
                builder.linear(linear.initial_delay, linear.increment, linear.max_delay)
            }
            BasePolicy::Exponential => {
                let grows = &self.exponential;
                builder.exponential(grows.initial_delay, grows.multiplier, grows.max_delay)
            }
        };
        if let Some(limit) = self.max_elapsed {
            builder = builder.max_elapsed(limit);
        }
        for (listed, rule) in [
            (
                &self.include_exceptions,
                RetryBuilder::retry_on_type as fn(_, _) -> _,
            ),
            (&self.exclude_exceptions, RetryBuilder::no_retry_on_type),
        ] {
            for name in listed {
                builder = match names.find(name) {
                    Ok(ty) => rule(builder, ty.clone()),
                    Err(unknown) => builder.mistaken(PolicyError::UnknownErrorName(unknown)),
                };
            }
        }
        builder
    }
}
