//! Selects our section of a file: the whole file, `outbox`, or `namastack.outbox`. The last one is
//! for compatibility.

use super::{
    fault::{Fault, Problem},
    node::{Node, Spot, Value},
};
use crate::config::written::KEYS;

const OURS: &str = "outbox";
const VENDOR: &str = "namastack";

/// The section with our keys. If the file has one of the prefixes, all other sections belong to other
/// programs.
pub(super) fn strip(mut root: Node) -> Result<Node, Fault> {
    let plain = root.entry(OURS).map(|entry| entry.spot.clone());
    let vendor = root.entry(VENDOR).and_then(|entry| entry.node.entry(OURS));
    match (plain, vendor) {
        (None, None) => match root.entry(VENDOR) {
            Some(entry) => Err(refuse(
                entry.spot.clone(),
                format!("`{VENDOR}` has no section `{OURS}`; write the keys there"),
            )),
            None => Ok(root),
        },
        (Some(_), Some(second)) => Err(refuse(
            second.spot.clone(),
            format!("`{OURS}` and `{VENDOR}.{OURS}` are both present; keep one of them"),
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

/// Refuses one of our keys outside of our section, which would be ignored silently.
fn nothing_beside(section: &Node, prefix: &str) -> Result<(), Fault> {
    let entries = section.entries().unwrap_or_default();
    match entries.iter().find(|entry| KEYS.contains(&&*entry.key)) {
        Some(entry) => Err(refuse(
            entry.spot.clone(),
            format!(
                "`{}` is outside of `{prefix}` and would be ignored; move it into that section",
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
