//! [`PolicyConfig`]: one retry policy in a configuration, and its conversion to a [`Retry`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{declare::sections, duration, error_names::ErrorNames, jitter, places::Places};
use crate::retry::{Jitter, Retry, RetryBuilder, UnknownErrorName, defaults, filter::ErrorType};

sections! {
    /// One retry policy: the default policy, directly in the section `retry`, or a named policy in
    /// `retry.policies.<name>`.
    ///
    /// A configuration may contain all back-offs; [`policy`](Self::policy) selects one. The numbers are in
    /// [`retry::defaults`](crate::retry::defaults).
    pub struct PolicyConfig {
        /// The selected back-off. Default: exponential.
        pub policy: PolicyKind = PolicyKind::default(),
        /// The number of retries after the first attempt. Default: 3.
        pub max_retries: u32 = defaults::MAX_RETRIES,
        /// How delays are randomised: milliseconds above 1, or text such as `"500ms"` (up to 500 ms earlier or
        /// later), a share from 0.0 to 1.0, `full` (or `true`), `equal`, `decorrelated`, `none` (or
        /// `false`), or `"above 500ms"` (up to 500 ms later, never earlier). Default: none.
        #[serde(with = "jitter")]
        pub jitter: Jitter = Jitter::None,
        /// No retry starts later than this time after the first failure of any kind, `unavailable`
        /// included. Default: no limit.
        #[serde(with = "duration::millis", skip_serializing_if = "Option::is_none")]
        pub max_elapsed: Option<Duration> = None,
        /// For `policy: fixed`.
        pub fixed: FixedConfig = FixedConfig::default(),
        /// For `policy: linear`.
        pub linear: LinearConfig = LinearConfig::default(),
        /// For `policy: exponential`.
        pub exponential: ExponentialConfig = ExponentialConfig::default(),
        /// For `policy: jittered`. Kept for compatibility.
        pub jittered: JitteredConfig = JitteredConfig::default(),
        /// Names of error types. If the list is not empty, only these errors are retried.
        pub include_exceptions: Vec<String> = Vec::new(),
        /// Names of error types that are not retried.
        pub exclude_exceptions: Vec<String> = Vec::new(),
        #[serde(skip)]
        pub(crate) places: Places = Places::default(),
    }

    /// The same delay after each failure.
    #[derive(Eq)]
    pub struct FixedConfig {
        /// The delay. Default: 5 s.
        #[serde(with = "duration::millis")]
        pub delay: Duration = defaults::FIXED_DELAY,
    }

    /// A delay that grows by the same amount after each failure.
    #[derive(Eq)]
    pub struct LinearConfig {
        /// The delay after the first failure. Default: 2 s.
        #[serde(with = "duration::millis")]
        pub initial_delay: Duration = defaults::LINEAR_INITIAL,
        /// The increase of the delay after each further failure. Default: 2 s.
        #[serde(with = "duration::millis")]
        pub increment: Duration = defaults::LINEAR_INCREMENT,
        /// The longest delay. Default: 60 s.
        #[serde(with = "duration::millis")]
        pub max_delay: Duration = defaults::LINEAR_MAX,
    }

    /// A delay that is multiplied after each failure.
    pub struct ExponentialConfig {
        /// The delay after the first failure. Default: 1 s.
        #[serde(with = "duration::millis")]
        pub initial_delay: Duration = defaults::EXPONENTIAL_INITIAL,
        /// The longest delay. Default: 60 s.
        #[serde(with = "duration::millis")]
        pub max_delay: Duration = defaults::EXPONENTIAL_MAX,
        /// The factor of the delay after each further failure; above 1.0. Default: 2.0.
        pub multiplier: f64 = defaults::EXPONENTIAL_MULTIPLIER,
    }

    /// A base policy whose delays get up to `jitter` longer, never shorter. Kept for compatibility with
    /// older configurations: use [`PolicyConfig::jitter`] instead.
    #[derive(Eq)]
    pub struct JitteredConfig {
        /// The back-off to which the jitter is added. Default: exponential.
        pub base_policy: BasePolicy = BasePolicy::default(),
        /// The longest addition to a delay. Default: 500 ms.
        #[serde(with = "duration::millis")]
        pub jitter: Duration = defaults::ADDED_JITTER,
    }
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

impl PolicyConfig {
    /// A builder that starts with these values. It knows the names of common error types, and those that
    /// [`error_name`](RetryBuilder::error_name) adds. [`build`](RetryBuilder::build) reports an unknown name.
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
        for name in &self.include_exceptions {
            builder = builder.only_named(self.error_type(name, names));
        }
        for name in &self.exclude_exceptions {
            builder = builder.never_named(self.error_type(name, names));
        }
        builder
    }

    /// The names of error types in this policy that are neither common ones nor linked ones. A program may
    /// register them with [`.error_name`](crate::OutboxBuilder::error_name); otherwise they are mistakes.
    ///
    /// ```
    /// use outbox::Config;
    ///
    /// let text = r#"{ "retry": { "exclude-exceptions": ["std::fmt::Error", "std::io::Eror"] } }"#;
    /// let config: Config = serde_json::from_str(text)?;
    /// let unknown = config.retry.default.unwrap_or_default().unknown_error_names();
    /// assert_eq!(unknown.len(), 1);
    /// assert_eq!(unknown[0].nearest.as_deref(), Some("std::io::Error"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn unknown_error_names(&self) -> Vec<UnknownErrorName> {
        let linked = ErrorNames::linked();
        let names = linked.as_ref().unwrap_or(ErrorNames::built_in());
        let listed = self
            .include_exceptions
            .iter()
            .chain(&self.exclude_exceptions);
        let found = listed.map(|name| self.error_type(name, names));
        found.filter_map(Result::err).collect()
    }

    fn error_type(&self, name: &str, names: &ErrorNames) -> Result<ErrorType, UnknownErrorName> {
        let found = names.find(name).cloned();
        found.map_err(|unknown| UnknownErrorName {
            place: self.places.of_error_name(name).cloned(),
            ..unknown
        })
    }
}
