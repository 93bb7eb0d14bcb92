//! [`Policies`]: the retry policies that handlers share, and the choice of one for each handler.

use std::{collections::BTreeMap, sync::Arc};

use super::{AttributePolicy, Instances, PolicyPlace, Problem, Registration, nearest::nearest};
use crate::{
    config::{Place, PolicyConfig, RetryConfig, error_names::ErrorNames},
    handler::States,
    retry::{IntoPolicy as _, PolicyError, PolicySource, Resolved, Retry, RetryPolicy, resolve},
};

pub(super) type Policy = Arc<dyn RetryPolicy>;

/// The policies that the builder and the configuration set.
pub(super) struct Policies {
    global: Option<Policy>,
    /// `None` for a policy that could not be built, which `check` has reported.
    named: BTreeMap<String, Option<Policy>>,
    /// Where the configuration file has its named policies.
    places: BTreeMap<String, Place>,
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
            places: retry.policy_places(),
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
        match of_attribute {
            Some(of_attribute) if of_trait.is_none() => Some(of_attribute),
            of_attribute => Some(self.choose(of_trait, of_attribute.map(|one| one.policy))),
        }
    }

    /// Chooses among the policies of a trait and of an attribute, and those for all handlers.
    fn choose(&self, of_trait: Option<Policy>, of_attribute: Option<Policy>) -> Resolved<Policy> {
        let set = [
            (PolicySource::Trait, of_trait),
            (PolicySource::Attribute, of_attribute),
            (PolicySource::Global, self.global.clone()),
            (PolicySource::Configuration, self.configured.clone()),
        ];
        resolve(set, self.default.clone())
    }

    /// The policy of a handler that has this attribute and no trait.
    fn of_attribute(
        &self,
        attribute: AttributePolicy,
        registration: &Registration,
        problems: &mut Vec<Problem>,
    ) -> Option<Resolved<Policy>> {
        let (handler, location) = (registration.id, registration.location);
        let resolved = match attribute {
            AttributePolicy::Built(policy) => policy().map(|own| self.choose(None, Some(own))),
            AttributePolicy::Inline(parts) => self.choose(None, None).refined(parts()),
            AttributePolicy::Named(name) => {
                let Some(policy) = self.named.get(name) else {
                    let names = self.named.keys().map(String::as_str);
                    let nearest = nearest(name, names);
                    problems.push(Problem::UnknownPolicy {
                        name,
                        nearest: nearest.map(str::to_owned),
                        nearest_at: nearest.and_then(|nearest| self.places.get(nearest).cloned()),
                        handler,
                        location,
                    });
                    return None;
                };
                // `check` has reported a named policy that cannot be built.
                Ok(self.choose(None, Some(policy.clone()?)))
            }
        };
        resolved
            .map_err(|source| {
                problems.push(Problem::HandlerPolicy {
                    handler,
                    location,
                    source,
                });
            })
            .ok()
    }
}
