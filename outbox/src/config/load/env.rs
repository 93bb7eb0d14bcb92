//! Applies environment variables to the tree: `OUTBOX__RETRY__MAX_RETRIES=5`.

use std::sync::Arc;

use super::{
    node::{Entry, Node, Spot, Value},
    scalar::Kind,
};
use crate::{
    config::{ConfigError, Place},
    registry::nearest::{kebab, nearest},
};

/// The beginning of our variables. Keys follow, separated by [`BETWEEN`].
const PREFIX: &str = "OUTBOX__";
const BETWEEN: &str = "__";

/// Our variables in the environment of this process.
pub(super) fn of_process() -> Result<Vec<(String, String)>, ConfigError> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .map(|(name, value)| match value.into_string() {
            Ok(value) => Ok((name, value)),
            Err(_) => Err(refuse(&name, "the value is not UTF-8 text")),
        })
        .collect()
}

fn refuse(variable: &str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Refused {
        place: Some(Place::Variable(variable.to_owned())),
        problem: problem.into(),
    }
}

/// The most similar variable to one that has led to an unknown key of a section.
pub(super) fn nearest_variable(section: &[String], key: &str, known: &[&str]) -> Option<Box<str>> {
    if let Some(nearest) = nearest(key, known.iter().copied()) {
        return Some(variable(section, &[nearest]));
    }
    // One underscore instead of two: `OUTBOX__RETRY_MAX_RETRIES`.
    known.iter().find_map(|known| {
        let rest = key.strip_prefix(known)?.strip_prefix('-')?;
        Some(variable(section, &[known, rest]))
    })
}

fn variable(section: &[String], keys: &[&str]) -> Box<str> {
    let keys = section
        .iter()
        .map(String::as_str)
        .chain(keys.iter().copied());
    let words = keys.map(|key| kebab(key).replace('-', "_").to_uppercase());
    format!("{PREFIX}{}", words.collect::<Vec<_>>().join(BETWEEN)).into()
}

/// Writes the variables to the tree. Unknown keys are found later, when `serde` reads the tree.
pub(super) fn apply(
    root: &mut Node,
    mut variables: Vec<(String, String)>,
) -> Result<(), ConfigError> {
    // The environment has no order. Sorted, the same mistakes give the same message.
    variables.sort();
    for (name, value) in &variables {
        if let Some(keys) = name.strip_prefix(PREFIX) {
            set(root, name, keys, value)?;
        }
    }
    Ok(())
}

fn set(root: &mut Node, name: &str, keys: &str, value: &str) -> Result<(), ConfigError> {
    let spot = Spot::Variable(Arc::from(name));
    let mut node = root;
    let mut path = Vec::new();
    for word in keys.split(BETWEEN) {
        if word.is_empty() || word.starts_with('_') || word.ends_with('_') {
            let problem = "not a valid name; write two underscores between keys, as in `OUTBOX__RETRY__MAX_RETRIES`";
            return Err(refuse(name, problem));
        }
        if matches!(&node.value, Value::Scalar(_, Kind::Null)) {
            node.value = Value::Section(Vec::new());
        }
        let Value::Section(entries) = &mut node.value else {
            let problem = format!("`{}` is not a section, so it has no keys", path.join("."));
            return Err(refuse(name, problem));
        };
        let key = word.to_lowercase().replace('_', "-");
        path.push(key.clone());
        let index = index_of(entries, key, &spot).map_err(|problem| refuse(name, problem))?;
        node = &mut entries[index].node;
    }
    if let Spot::Variable(other) = &node.spot
        && !matches!(node.value, Value::Section(_))
    {
        return Err(refuse(name, format!("sets the same key as `{other}`")));
    }
    let value = Value::Scalar(value.trim().to_owned(), Kind::Untyped);
    *node = Node { value, spot };
    Ok(())
}

/// The position of the key, whatever its spelling in the file. A new key is added at the end.
fn index_of(entries: &mut Vec<Entry>, key: String, spot: &Spot) -> Result<usize, String> {
    if let Some(exact) = entries.iter().position(|entry| entry.key == key) {
        return Ok(exact);
    }
    let mut alike =
        (0..entries.len()).filter(|&index| letters(&entries[index].key) == letters(&key));
    match (alike.next(), alike.next()) {
        (Some(first), Some(second)) => Err(format!(
            "could mean `{}` or `{}`; rename one of them",
            entries[first].key, entries[second].key
        )),
        (Some(only), None) => Ok(only),
        (None, _) => {
            entries.push(Entry {
                key,
                spot: spot.clone(),
                node: Node::empty_section(spot.clone()),
            });
            Ok(entries.len() - 1)
        }
    }
}

/// The name without case and dashes, which the name of a variable cannot express.
fn letters(name: &str) -> String {
    name.to_lowercase().replace(['-', '_'], "")
}
