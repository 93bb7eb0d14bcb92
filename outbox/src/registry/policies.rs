//! The policies that handlers share, and the one that each handler ends up with.

use std::{collections::BTreeMap, sync::Arc};

use super::Transactions;
use super::{AttributePolicy, HandlerEntry, Instances, Problem, Registration};
use crate::{
    config::{RetryConfig, error_names::ErrorNames},
    handler::States,
    registry::nearest::nearest,
    retry::{Candidates, IntoPolicy as _, PolicyError, Retry, RetryPolicy, resolve},
    telemetry::trace::AttemptLog,
};

pub(super) type Policy = Arc<dyn RetryPolicy>;

/// The policies that are not a handler's own.
pub(super) struct Policies {
    global: Option<Policy>,
    named: BTreeMap<String, Option<Policy>>,
    configured: Option<Policy>,
    default: Policy,
}

impl Policies {
    /// Builds those of the configuration, and reports each that cannot be built.
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
        let mut sound = |place: String, policy: Result<Policy, PolicyError>| {
            policy
                .map_err(|source| problems.push(Problem::Policy { place, source }))
                .ok()
        };
        Self {
            global: global.and_then(|policy| {
                sound(
                    "the policy given with `.retry_policy(..)`".to_owned(),
                    policy,
                )
            }),
            named: named
                .into_iter()
                .map(|(name, policy)| {
                    let policy = sound(format!("the named policy `{name}`"), policy);
                    (name, policy)
                })
                .collect(),
            configured: configured.and_then(|policy| {
                sound(
                    "the `retry` section of the configuration".to_owned(),
                    policy,
                )
            }),
            default: sound("the default policy".to_owned(), default)
                .unwrap_or_else(|| Arc::new(Retry::default())),
        }
    }

    /// The handler with its policy; `None` if something is wrong with it, which is then reported.
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
                // A name whose policy is broken has been reported already.
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
