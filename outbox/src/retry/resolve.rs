//! Which of the places that may name a policy wins for a handler.

use std::fmt;

use serde::Serialize;

/// Where a handler's policy came from, strongest first.
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
    /// Nobody said anything: exponential from 1 s, doubling up to 60 s, 3 retries.
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

/// What each place says about one handler, if anything.
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
    /// When there is none of them.
    pub default: P,
}

/// The policy that won, where it came from, and the weaker ones that it shadows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved<P> {
    /// The policy to use.
    pub policy: P,
    /// Where it was found.
    pub source: PolicySource,
    /// Places that named a policy too, and lost; strongest first.
    pub shadows: Vec<PolicySource>,
}

/// Trait, then attribute, then global override, then configuration, then the default.
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
