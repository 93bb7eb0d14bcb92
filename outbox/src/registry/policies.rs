//! [`Policies`]: the retry policies that handlers share, and the choice of one for each handler.

use std::{collections::BTreeMap, sync::Arc};

use super::{AttributePolicy, Instances, PolicyPlace, Problem, Registration, nearest::nearest};
use crate::{
    config::{PolicyConfig, RetryConfig, error_names::ErrorNames},
    handler::States,
    retry::{IntoPolicy as _, PolicyError, PolicySource, Resolved, Retry, RetryPolicy, resolve},
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
        let build = |policy: &PolicyConfig| policy.builder_with(names).into_policy();
        for (name, policy) in &retry.policies {
            named.entry(name.clone()).or_insert_with(|| build(policy));
        }
        let mut checked = |place: PolicyPlace, policy: Result<Policy, PolicyError>| {
            policy
                .map_err(|source| problems.push(Problem::Policy { place, source }))
                .ok()
        };
        let global = global.and_then(|policy| checked(PolicyPlace::Global, policy));
        let named = named.into_iter().map(|(name, policy)| {
            let policy = checked(PolicyPlace::Named(name.clone()), policy);
            (name, policy)
        });
        Self {
            global,
            named: named.collect(),
            configured: (retry.default.as_ref())
                .and_then(|policy| checked(PolicyPlace::Configuration, build(policy))),
            default: checked(PolicyPlace::Default, build(&PolicyConfig::default()))
                .unwrap_or_else(|| Arc::new(Retry::default())),
        }
    }

    /// The policy of a handler. `None` if its `#[retryable]` is wrong, which is then reported.
    pub(super) fn resolve(
        &self,
        registration: &Registration,
        states: &States,
        problems: &mut Vec<Problem>,
    ) -> Option<Resolved<Policy>> {
        let of_trait = (registration.of_trait).and_then(|policy| policy(&Instances(states)));
        let of_attribute = match registration.of_attribute {
            None => None,
            Some(attribute) => Some(self.of_attribute(attribute, registration, problems)?),
        };
        let set = [
            (PolicySource::Trait, of_trait),
            (PolicySource::Attribute, of_attribute),
            (PolicySource::Global, self.global.clone()),
            (PolicySource::Configuration, self.configured.clone()),
        ];
        Some(resolve(set, self.default.clone()))
    }

    fn of_attribute(
        &self,
        attribute: AttributePolicy,
        registration: &Registration,
        problems: &mut Vec<Problem>,
    ) -> Option<Policy> {
        let (handler, location) = (registration.id, registration.location);
        let problem = match attribute {
            AttributePolicy::Built(policy) => match policy() {
                Ok(policy) => return Some(policy),
                Err(source) => Problem::HandlerPolicy {
                    handler,
                    location,
                    source,
                },
            },
            AttributePolicy::Named(name) => match self.named.get(name) {
                // `check` has reported a named policy that cannot be built.
                Some(policy) => return policy.clone(),
                None => Problem::UnknownPolicy {
                    name,
                    nearest: nearest(name, self.named.keys().map(String::as_str))
                        .map(str::to_owned),
                    handler,
                    location,
                },
            },
        };
        problems.push(problem);
        None
    }
}
