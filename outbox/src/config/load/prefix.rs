//! Which part of a file is ours: all of it, `outbox`, or `namastack.outbox`.

use super::{
    fault::{Fault, Problem},
    node::{Node, Spot, Value},
};
use crate::config::KEYS;

const OURS: &str = "outbox";
const VENDOR: &str = "namastack";

/// The section with our keys. Beside a prefix, other sections belong to somebody else.
pub(super) fn strip(mut root: Node) -> Result<Node, Fault> {
    let plain = root.entry(OURS).map(|entry| entry.spot.clone());
    let vendor = root.entry(VENDOR).and_then(|entry| entry.node.entry(OURS));
    match (plain, vendor) {
        (None, None) => match root.entry(VENDOR) {
            Some(entry) => Err(refuse(
                entry.spot.clone(),
                format!("`{VENDOR}` has no section `{OURS}`, where the keys belong"),
            )),
            None => Ok(root),
        },
        (Some(_), Some(second)) => Err(refuse(
            second.spot.clone(),
            format!("`{OURS}` and `{VENDOR}.{OURS}` are both there; keep one of them"),
        )),
        (Some(_), None) => {
            nothing_beside(&root, OURS)?;
            Ok(take(&mut root, OURS))
        }
        (None, Some(_)) => {
            let prefix = format!("{VENDOR}.{OURS}");
            nothing_beside(&root, &prefix)?;
            let mut vendor = take(&mut root, VENDOR);
            nothing_beside(&vendor, &prefix)?;
            Ok(take(&mut vendor, OURS))
        }
    }
}

/// One of our keys outside our section would silently not be read.
fn nothing_beside(section: &Node, prefix: &str) -> Result<(), Fault> {
    let entries = section.entries().unwrap_or_default();
    match entries.iter().find(|entry| KEYS.contains(&&*entry.key)) {
        Some(entry) => Err(refuse(
            entry.spot.clone(),
            format!(
                "`{}` stands beside `{prefix}` and would not be read; move it in there",
                entry.key
            ),
        )),
        None => Ok(()),
    }
}

fn take(section: &mut Node, key: &str) -> Node {
    let found = match &mut section.value {
        Value::Section(entries) => {
            let found = entries.iter().position(|entry| entry.key == key);
            found.map(|index| entries.swap_remove(index).node)
        }
        Value::Scalar(_) | Value::List(_) => None,
    };
    found.unwrap_or_else(|| Node::empty_section(section.spot.clone()))
}

fn refuse(spot: Spot, problem: String) -> Fault {
    Fault::at(spot, Problem::Refused(problem))
}
