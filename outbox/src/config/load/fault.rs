//! [`Fault`]: a mistake in the tree. It collects its place and path on the way to the root.

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

#[derive(Debug)]
pub(super) struct Fault {
    problem: Problem,
    /// `None` until the fault reaches the node that it concerns.
    spot: Option<Spot>,
    /// The value in words; `None` for a section.
    found: Option<String>,
    /// The keys that lead to the node, outermost first.
    path: Vec<String>,
}

#[derive(Debug)]
pub(super) enum Problem {
    UnknownKey {
        key: String,
        known: &'static [&'static str],
    },
    UnknownValue {
        value: String,
        known: &'static [&'static str],
    },
    DuplicateKey(String),
    /// The expected value.
    Expected(String),
    /// The problem with the value: the rest of a sentence after "which".
    Value(String),
    /// The problem with the value: the rest of a sentence after the key.
    Impossible(String),
    /// The whole message.
    Refused(String),
}

impl Problem {
    pub(super) fn too_deep() -> Self {
        Self::Refused("sections and lists are nested too deeply; no key needs that".into())
    }
}

impl Fault {
    fn new(problem: Problem) -> Self {
        Self {
            problem,
            spot: None,
            found: None,
            path: Vec::new(),
        }
    }

    pub(super) fn at(spot: Spot, problem: Problem) -> Self {
        Self {
            spot: Some(spot),
            ..Self::new(problem)
        }
    }

    pub(super) fn with_path(self, path: Vec<String>) -> Self {
        Self { path, ..self }
    }

    /// The reader calls this for each node on the way to the root. The first node is the one that the
    /// fault concerns.
    pub(super) fn about(mut self, node: &Node) -> Self {
        if self.spot.is_none() {
            let key = match &self.problem {
                Problem::UnknownKey { key, .. } => node.entry(key),
                _ => None,
            };
            self.spot = Some(key.map_or(&node.spot, |entry| &entry.spot).clone());
            self.found = Some(node.describe());
        }
        self
    }

    /// The reader calls this for each key on the way to the root.
    pub(super) fn within(mut self, key: &str) -> Self {
        self.path.insert(0, key.to_owned());
        self
    }

    pub(super) fn into_error(self, source: &Source) -> ConfigError {
        let spot = self.spot.unwrap_or(Spot::Nowhere);
        let place = source.place(&spot);
        let key = dotted(&self.path);
        let found = self.found.unwrap_or_else(|| "is wrong".to_owned());
        match self.problem {
            Problem::UnknownKey { key: name, known } => {
                if let Some(instead) = reference_keys::instead(&self.path, &name) {
                    let path: Vec<String> = self.path.into_iter().chain([name]).collect();
                    let key = dotted(&path);
                    return ConfigError::NoCounterpart {
                        place,
                        key,
                        instead,
                    };
                }
                let nearest = match &spot {
                    Spot::Variable(_) => env::nearest_variable(&self.path, &name, known),
                    Spot::Nowhere | Spot::Byte(_) | Spot::Mark { .. } => {
                        nearest(&name, known.iter().copied()).map(Box::from)
                    }
                };
                ConfigError::UnknownKey {
                    place,
                    key: shown(&name),
                    section: (!self.path.is_empty()).then_some(key.into()),
                    nearest,
                    known,
                }
            }
            Problem::UnknownValue { value, known } => ConfigError::UnknownValue {
                place,
                key,
                nearest: nearest(&value, known.iter().copied()).map(Box::from),
                value: shown(&value),
                known,
            },
            Problem::DuplicateKey(name) => ConfigError::Refused {
                place,
                problem: format!("`{}` is given twice; remove one", shown(&name)),
            },
            Problem::Expected(_) | Problem::Value(_) | Problem::Impossible(_)
                if self.path.is_empty() =>
            {
                let problem = format!("the document {found}, but must be a section of keys");
                ConfigError::Refused { place, problem }
            }
            Problem::Expected(expected) => ConfigError::Invalid {
                place,
                key,
                problem: format!("{found}, but must be {expected}"),
            },
            Problem::Value(problem) => ConfigError::Invalid {
                place,
                key,
                problem: format!("{found}, which {problem}"),
            },
            Problem::Impossible(problem) => ConfigError::Invalid {
                place,
                key,
                problem,
            },
            Problem::Refused(problem) => ConfigError::Refused { place, problem },
        }
    }
}

/// `retry.include-exceptions[0]`.
fn dotted(path: &[String]) -> String {
    shown(&path.join(".").replace(".[", "["))
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Problem::Value(message.to_string()))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(Problem::Expected(in_words(&expected.to_string())))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(Problem::Expected(in_words(&expected.to_string())))
    }

    fn unknown_variant(value: &str, known: &'static [&'static str]) -> Self {
        let value = value.to_owned();
        Self::new(Problem::UnknownValue { value, known })
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        let key = key.to_owned();
        Self::new(Problem::UnknownKey { key, known })
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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.problem)
    }
}

impl std::error::Error for Fault {}
