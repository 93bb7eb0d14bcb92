//! [`resolve`]: which policy a handler uses if several places set one.

use std::fmt;

use serde::Serialize;

/// Where a handler's policy was set. An earlier variant wins over a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PolicySource {
    /// `impl RetryAware for ..`.
    Trait,
    /// `#[retryable(..)]` on the handler.
    Attribute,
    /// `.retry_policy(..)` on the builder, for all handlers.
    Global,
    /// The `retry` section of the configuration.
    Configuration,
    /// No policy is set: 3 retries, after 1 s, 2 s and 4 s.
    Default,
}

impl fmt::Display for PolicySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trait => "impl RetryAware",
            Self::Attribute => "#[retryable]",
            Self::Global => "builder.retry_policy",
            Self::Configuration => "configuration",
            Self::Default => "default",
        })
    }
}

/// The policies that apply to one handler, by the place that sets them.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the four places and the default are the contract"
)]
pub struct Candidates<P> {
    /// From `impl RetryAware`.
    pub of_trait: Option<P>,
    /// From `#[retryable]`.
    pub of_attribute: Option<P>,
    /// From `.retry_policy(..)`.
    pub global: Option<P>,
    /// From the configuration.
    pub configured: Option<P>,
    /// Used if no place sets one.
    pub default: P,
}

/// The policy that a handler uses, and the places that set another one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved<P> {
    /// The policy to use.
    pub policy: P,
    /// Where it was set.
    pub source: PolicySource,
    /// Weaker places that set a policy too, strongest first.
    pub shadows: Vec<PolicySource>,
}

/// Chooses the policy: trait, then attribute, then builder, then configuration, then default.
///
/// ```
/// use outbox::{__private::{Candidates, resolve}, retry::PolicySource};
///
/// let resolved = resolve(Candidates {
///     of_trait: None,
///     of_attribute: Some("mine"),
///     global: Some("ours"),
///     configured: None,
///     default: "theirs",
/// });
/// assert_eq!((resolved.policy, resolved.source), ("mine", PolicySource::Attribute));
/// assert_eq!(resolved.shadows, [PolicySource::Global]);
/// ```
pub fn resolve<P>(candidates: Candidates<P>) -> Resolved<P> {
    let mut named = [
        (PolicySource::Trait, candidates.of_trait),
        (PolicySource::Attribute, candidates.of_attribute),
        (PolicySource::Global, candidates.global),
        (PolicySource::Configuration, candidates.configured),
    ]
    .into_iter()
    .filter_map(|(source, policy)| policy.map(|policy| (source, policy)));

    let (source, policy) = named
        .next()
        .unwrap_or((PolicySource::Default, candidates.default));
    Resolved {
        policy,
        source,
        shadows: named.map(|(source, _)| source).collect(),
    }
}
