//! [`Fault`]: a mistake that `serde` finds in the tree. It collects its place and path on the way to
//! the root.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::{
    env,
    node::{Node, Spot},
    reference_keys,
    scalar::shown,
    source::Source,
};
use crate::{config::ConfigError, registry::nearest::nearest};

#[derive(Debug, thiserror::Error)]
#[error("{problem:?}")]
pub(super) struct Fault {
    problem: Problem,
    /// The place and the value in words. `None` until the fault reaches the node that it concerns.
    found: Option<(Spot, String)>,
    /// The keys that lead to the node, innermost first.
    path: Vec<String>,
}

/// All valid keys or words.
type Known = &'static [&'static str];

#[derive(Debug)]
enum Problem {
    UnknownKey(String, Known),
    UnknownValue(String, Known),
    /// The rest of a sentence after the value in words.
    Value(String),
}

impl Fault {
    fn new(problem: Problem) -> Self {
        Self {
            problem,
            found: None,
            path: Vec::new(),
        }
    }

    fn expected(expected: &dyn Expected) -> Self {
        let expected = in_words(&expected.to_string());
        Self::new(Problem::Value(format!(", but must be {expected}")))
    }

    /// The reader calls this for each node on the way to the root. The first node is the one that the
    /// fault concerns.
    pub(super) fn about(mut self, node: &Node, key: Option<&str>) -> Self {
        self.found.get_or_insert_with(|| {
            let key = match &self.problem {
                Problem::UnknownKey(key, _) => node.entry(key),
                Problem::UnknownValue(..) | Problem::Value(_) => None,
            };
            let spot = key.map_or(&node.spot, |entry| &entry.spot);
            (spot.clone(), node.describe())
        });
        self.path.extend(key.map(str::to_owned));
        self
    }

    pub(super) fn into_error(mut self, source: &Source) -> ConfigError {
        self.path.reverse();
        let (spot, found) = self
            .found
            .unwrap_or_else(|| (Spot::Nowhere, "is wrong".to_owned()));
        let place = source.place(&spot);
        let key = dotted(&self.path);
        match self.problem {
            Problem::UnknownKey(name, known) => {
                if let Some(instead) = reference_keys::instead(&self.path, &name) {
                    self.path.push(name);
                    return ConfigError::NoCounterpart {
                        place,
                        key: dotted(&self.path),
                        instead,
                    };
                }
                let nearest = if let Spot::Variable(_) = spot {
                    env::nearest_variable(&self.path, &name, known)
                } else {
                    nearest(&name, known.iter().copied()).map(Box::from)
                };
                ConfigError::UnknownKey {
                    place,
                    key: shown(&name),
                    section: (!self.path.is_empty()).then_some(key.into()),
                    nearest,
                    known,
                }
            }
            Problem::UnknownValue(value, known) => ConfigError::UnknownValue {
                place,
                key,
                nearest: nearest(&value, known.iter().copied()).map(Box::from),
                value: shown(&value),
                known,
            },
            Problem::Value(_) if self.path.is_empty() => {
                let problem = format!("the document {found}, but must be a section of keys");
                ConfigError::Refused { place, problem }
            }
            Problem::Value(problem) => ConfigError::Invalid {
                place,
                key,
                problem: found + &problem,
            },
        }
    }
}

/// `retry.include-exceptions[0]`.
pub(super) fn dotted(path: &[String]) -> String {
    shown(&path.join(".").replace(".[", "["))
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Problem::Value(format!(", which {message}")))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expected(expected)
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expected(expected)
    }

    fn unknown_variant(value: &str, known: Known) -> Self {
        Self::new(Problem::UnknownValue(value.to_owned(), known))
    }

    fn unknown_field(key: &str, known: Known) -> Self {
        Self::new(Problem::UnknownKey(key.to_owned(), known))
    }
}

/// Translates what `serde` expects into words for the author of a file.
fn in_words(expected: &str) -> String {
    match expected {
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a string" => "text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a section".to_owned(),
        _ if expected.starts_with("struct ") => "a section".to_owned(),
        _ => expected.to_owned(),
    }
}
