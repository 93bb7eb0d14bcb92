//! [`Policies`]: the retry policies that handlers share, and the choice of one for each handler.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    AttributePolicy, HandlerEntry, Instances, PolicyPlace, Problem, Registration,
    handler_entry::Transactions,
};
use crate::{
    config::{RetryConfig, error_names::ErrorNames},
    handler::States,
    registry::nearest::nearest,
    retry::{Candidates, IntoPolicy as _, PolicyError, Retry, RetryPolicy, resolve},
    telemetry::trace::AttemptLog,
};

pub(super) type Policy = Arc<dyn RetryPolicy>;

/// The policies that the builder and the configuration set.
pub(super) struct Policies {
    global: Option<Policy>,
    /// `None` for a policy that could not be built, which `check` has reported.
    named: BTreeMap<String, Option<Policy>>,
    configured: Option<Policy>,
    default: Policy,
}

impl Policies {
    /// Builds the policies of the configuration, and reports each policy that cannot be built.
    pub(super) fn check(
        global: Option<Result<Policy, PolicyError>>,
        mut named: BTreeMap<String, Result<Policy, PolicyError>>,
        retry: &RetryConfig,
        names: &ErrorNames,
        problems: &mut Vec<Problem>,
    ) -> Self {
        for (name, policy) in &retry.policies {
            named
                .entry(name.clone())
                .or_insert_with(|| policy.builder_with(names).into_policy());
        }
        let configured = retry
            .default
            .as_ref()
            .map(|policy| policy.builder_with(names).into_policy());
        let default = RetryConfig::default().builder_with(names).into_policy();
        let mut checked = |place: PolicyPlace, policy: Result<Policy, PolicyError>| {
            policy
                .map_err(|source| problems.push(Problem::Policy { place, source }))
                .ok()
        };
        Self {
            global: global.and_then(|policy| checked(PolicyPlace::Global, policy)),
            named: named
                .into_iter()
                .map(|(name, policy)| {
                    let policy = checked(PolicyPlace::Named(name.clone()), policy);
                    (name, policy)
                })
                .collect(),
            configured: configured.and_then(|policy| checked(PolicyPlace::Configuration, policy)),
            default: checked(PolicyPlace::Default, default)
                .unwrap_or_else(|| Arc::new(Retry::default())),
        }
    }

    /// The handler with its policy. `None` if its `#[retryable]` is wrong, which is then reported.
    pub(super) fn resolve(
        &self,
        registration: &'static Registration,
        states: &States,
        problems: &mut Vec<Problem>,
    ) -> Option<HandlerEntry> {
        let of_attribute = match registration.of_attribute {
            None => None,
            Some(attribute) => Some(self.of_attribute(attribute, registration, problems)?),
        };
        let resolved = resolve(Candidates {
            of_trait: registration
                .of_trait
                .and_then(|policy| policy(&Instances(states))),
            of_attribute,
            global: self.global.clone(),
            configured: self.configured.clone(),
            default: self.default.clone(),
        });
        Some(HandlerEntry {
            registration,
            transactions: Transactions::of(registration),
            policy: resolved.policy,
            source: resolved.source,
            shadows: resolved.shadows,
            log: AttemptLog::default(),
        })
    }

    fn of_attribute(
        &self,
        attribute: AttributePolicy,
        registration: &Registration,
        problems: &mut Vec<Problem>,
    ) -> Option<Policy> {
        let (handler, location) = (registration.id, registration.location);
        match attribute {
            AttributePolicy::Built(policy) => policy()
                .map_err(|source| {
                    problems.push(Problem::HandlerPolicy {
                        handler,
                        location,
                        source,
                    });
                })
                .ok(),
            AttributePolicy::Named(name) => match self.named.get(name) {
                // `check` has reported a named policy that cannot be built.
                Some(policy) => policy.clone(),
                None => {
                    let names = self.named.keys().map(String::as_str);
                    problems.push(Problem::UnknownPolicy {
                        name,
                        nearest: nearest(name, names).map(ToOwned::to_owned),
                        handler,
                        location,
                    });
                    None
                }
            },
        }
    }
}
