//! [`resolve`]: which policy a handler uses if several places set one.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::Serialize;

use super::{PolicyError, PolicyPart, RetryParts, RetryPolicy};

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
    /// No policy is set. See [`defaults`](super::defaults).
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

/// The policy that a handler uses, and the places that set another one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved<P> {
    /// The policy to use.
    pub policy: P,
    /// Where it was set.
    pub source: PolicySource,
    /// The place of each part that is not from `source`.
    pub inherited: BTreeMap<PolicyPart, PolicySource>,
    /// Weaker places whose policies are not used at all, strongest first.
    pub shadows: Vec<PolicySource>,
}

impl<P> Resolved<P> {
    /// Where a part of the policy was set.
    pub(crate) fn source_of(&self, part: PolicyPart) -> PolicySource {
        self.inherited.get(&part).copied().unwrap_or(self.source)
    }
}

impl Resolved<Arc<dyn RetryPolicy>> {
    /// These parts of an attribute over this policy of a weaker place.
    pub(crate) fn refined(self, parts: RetryParts) -> Result<Self, PolicyError> {
        let missing = PolicyPart::ALL.into_iter().filter(|part| !parts.has(*part));
        let inherited: BTreeMap<_, _> = missing.map(|part| (part, self.source)).collect();
        let mut shadows = self.shadows;
        if inherited.is_empty() && self.source != PolicySource::Default {
            shadows.insert(0, self.source);
        }
        Ok(Self {
            policy: parts.over(self.policy)?,
            source: PolicySource::Attribute,
            inherited,
            shadows,
        })
    }
}

/// Chooses among the policies that places set: trait, then attribute, then builder, then
/// configuration. Without any, it is the default.
///
/// ```
/// use outbox::{__private::resolve, retry::PolicySource};
///
/// let set = [
///     (PolicySource::Trait, None),
///     (PolicySource::Attribute, Some("mine")),
///     (PolicySource::Global, Some("ours")),
///     (PolicySource::Configuration, None),
/// ];
/// let resolved = resolve(set, "theirs");
/// assert_eq!((resolved.policy, resolved.source), ("mine", PolicySource::Attribute));
/// assert_eq!(resolved.shadows, [PolicySource::Global]);
/// ```
pub fn resolve<P>(set: [(PolicySource, Option<P>); 4], default: P) -> Resolved<P> {
    let set = set.into_iter();
    let mut set: BTreeMap<_, _> = set
        .filter_map(|(source, policy)| Some((source, policy?)))
        .collect();
    let (source, policy) = set.pop_first().unwrap_or((PolicySource::Default, default));
    Resolved {
        policy,
        source,
        inherited: BTreeMap::new(),
        shadows: set.into_keys().collect(),
    }
}
