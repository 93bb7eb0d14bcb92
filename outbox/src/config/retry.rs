//! [`RetryConfig`]: the section `retry`.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor, value::MapAccessDeserializer,
    },
};

use super::{Place, PolicyConfig, error_names::ErrorNames};
use crate::retry::{Retry, RetryBuilder};

/// The section `retry`: the default policy, whose keys are directly in the section, and named
/// policies.
///
/// ```yaml
/// retry:
///   policy: exponential
///   max-retries: 5
///   policies:
///     bank: { policy: fixed, fixed: { delay: 30s } }
/// ```
///
/// A handler uses a named policy with `#[retryable(policy = "bank")]`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct RetryConfig {
    /// The default policy. `None` if the section has none of its keys.
    #[serde(flatten)]
    pub default: Option<PolicyConfig>,
    /// Whether publishing stores the `max-retries` of the default policy with each record. Then a
    /// rolling deployment does not change it for records that are already published. Default: false.
    pub pin_at_schedule: bool,
    /// The named policies. They do not inherit from the default policy.
    pub policies: BTreeMap<String, PolicyConfig>,
}

impl Retry {
    /// A builder that starts with the configured default policy. Without a configured policy it starts with
    /// that of a handler without any policy; see [`retry::defaults`](crate::retry::defaults).
    ///
    /// It knows the names of common error types and of every linked `#[error_name]`. Other names get their
    /// types from [`RetryBuilder::error_name`]. If the builder is given to
    /// [`.retry_policy`](crate::OutboxBuilder::retry_policy) or `.named_policy`, the names of
    /// [`.error_name`](crate::OutboxBuilder::error_name) count too, whichever call comes first.
    /// [`build`](RetryBuilder::build) reports an unknown name, with its place in the file.
    ///
    /// ```
    /// use std::time::Duration;
    /// use outbox::{Config, Retry, RetryPolicy};
    ///
    /// let config: Config = serde_json::from_str(r#"{ "retry": { "max-retries": 5 } }"#)?;
    /// let retry = Retry::from_config(&config.retry)
    ///     .no_retry_on::<std::num::ParseIntError>()
    ///     .build()?;
    /// assert_eq!(retry.max_retries(), 5);
    /// assert_eq!(retry.next_delay(3), Duration::from_secs(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_config(config: &RetryConfig) -> RetryBuilder {
        let policy = config.default.clone().unwrap_or_default();
        match ErrorNames::linked() {
            Ok(names) => policy.builder_with(&names),
            Err(duplicate) => policy.builder().mistaken(duplicate.into()),
        }
    }
}

impl RetryConfig {
    /// Where a file has each named policy.
    pub(crate) fn policy_places(&self) -> BTreeMap<String, Place> {
        let policies = self.policies.iter();
        let places =
            policies.map(|(name, policy)| Some((name.clone(), policy.places.policy.clone()?)));
        places.flatten().collect()
    }

    /// The `max_retries` that publishing stores with each record, if
    /// [`pin_at_schedule`](Self::pin_at_schedule) is on.
    pub(crate) fn pinned_max_retries(&self) -> Option<u32> {
        self.pin_at_schedule
            .then(|| self.default.clone().unwrap_or_default().max_retries)
    }
}

/// The keys of the section: the keys of [`PolicyConfig`], and two more.
const KEYS: &[&str] = &[
    "policy",
    "max-retries",
    "jitter",
    "max-elapsed",
    "fixed",
    "linear",
    "exponential",
    "jittered",
    "include-exceptions",
    "exclude-exceptions",
    "pin-at-schedule",
    "policies",
];

// Not derived: `#[serde(flatten)]` would lose the check for unknown keys, the places of mistakes, and
// whether the section has a key of the default policy.
impl<'de> Deserialize<'de> for RetryConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("RetryConfig", KEYS, Section)
    }
}

struct Section;

impl<'de> Visitor<'de> for Section {
    type Value = RetryConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a section")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RetryConfig, A::Error> {
        let mut config = RetryConfig::default();
        let keys = PolicyKeys(map, &mut config);
        let policy = PolicyConfig::deserialize(MapAccessDeserializer::new(keys))?;
        config.default = config.default.map(|_| policy);
        Ok(config)
    }
}

/// The keys of the default policy. The other keys of the section are stored in the configuration,
/// and that there is a default policy.
struct PolicyKeys<'a, A>(A, &'a mut RetryConfig);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for PolicyKeys<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Self(map, config) = self;
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "pin-at-schedule" => config.pin_at_schedule = map.next_value()?,
                "policies" => config.policies = map.next_value()?,
                key if !KEYS.contains(&key) => return Err(A::Error::unknown_field(key, KEYS)),
                _ => {
                    config.default.get_or_insert_default();
                    return seed.deserialize(key.into_deserializer()).map(Some);
                }
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_keys_is_what_serde_accepts() {
        let error = serde_json::from_str::<PolicyConfig>(r#"{ "zzz": 1 }"#).unwrap_err();
        let own = &KEYS[..KEYS.len() - 2];
        let expected: Vec<String> = own.iter().map(|key| format!("`{key}`")).collect();
        assert!(
            error
                .to_string()
                .contains(&format!("expected one of {} at", expected.join(", "))),
            "{error}"
        );
    }

    #[test]
    fn an_unknown_key_is_refused_with_a_list_of_valid_keys() {
        let error = serde_json::from_str::<RetryConfig>(r#"{ "max-retrys": 1 }"#).unwrap_err();
        assert!(error.to_string().contains("`pin-at-schedule`"), "{error}");
    }
}
