//! Remembers the places of names that are looked up only at start-up.

use super::{
    node::{Node, Value},
    source::Source,
};
use crate::config::{Config, PolicyConfig};

/// The lists of a policy, which may also be next to `retry`.
const LISTS: [&str; 2] = ["include-exceptions", "exclude-exceptions"];

pub(super) fn remember(config: &mut Config, section: &Node, source: &Source) {
    let retry = section.entry("retry");
    if let Some(default) = &mut config.retry.default {
        in_policy(default, section, source);
        if let Some(entry) = retry {
            in_policy(default, &entry.node, source);
            default.places.policy = source.place(&entry.spot);
        }
    }
    let policies = retry.and_then(|retry| retry.node.entry("policies"));
    for (name, policy) in &mut config.retry.policies {
        if let Some(entry) = policies.and_then(|policies| policies.node.entry(name)) {
            in_policy(policy, &entry.node, source);
            policy.places.policy = source.place(&entry.spot);
        }
    }
}

/// The names in the lists of this section.
fn in_policy(policy: &mut PolicyConfig, section: &Node, source: &Source) {
    for list in LISTS.iter().filter_map(|list| section.entry(list)) {
        let names: Vec<(&str, &Node)> = match &list.node.value {
            Value::List(nodes) => {
                let names = nodes.iter().map(|node| match &node.value {
                    Value::Scalar(name, _) => Some((name.as_str(), node)),
                    Value::List(_) | Value::Section(_) => None,
                });
                names.flatten().collect()
            }
            // A variable: all names are in one text.
            Value::Scalar(text, _) => {
                let names = text.split(',').map(str::trim);
                names.map(|name| (name, &list.node)).collect()
            }
            Value::Section(_) => Vec::new(),
        };
        for (name, node) in names {
            if let Some(place) = source.place(&node.spot) {
                policy.places.error_names.insert(name.to_owned(), place);
            }
        }
    }
}
