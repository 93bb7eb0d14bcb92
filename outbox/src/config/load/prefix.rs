//! Selects our section of a file: the whole file, `outbox`, or `namastack.outbox`. The last one is
//! for compatibility.

use super::{
    node::{Entry, Node},
    source::Source,
};
use crate::config::{ConfigError, written::KEYS};

const OURS: &str = "outbox";
const VENDOR: &str = "namastack";

/// The section with our keys. If the file has one of the prefixes, all other sections belong to other
/// programs.
pub(super) fn strip(root: &Node, source: &Source) -> Result<Node, ConfigError> {
    let refuse = |entry: &Entry, problem: String| Err(source.refuse(&entry.spot, problem));
    let vendor = root.entry(VENDOR);
    let of_vendor = vendor.and_then(|entry| entry.node.entry(OURS));
    let prefix: &[&str] = match (root.entry(OURS), vendor, of_vendor) {
        (Some(_), _, None) => &[OURS],
        (Some(_), _, Some(second)) => {
            let problem =
                format!("`{OURS}` and `{VENDOR}.{OURS}` are both present; keep one of them");
            return refuse(second, problem);
        }
        (None, _, Some(_)) => &[VENDOR, OURS],
        (None, Some(vendor), None) => {
            let problem = format!("`{VENDOR}` has no section `{OURS}`; write the keys there");
            return refuse(vendor, problem);
        }
        (None, None, None) => &[],
    };
    let mut section = root;
    for key in prefix {
        // One of our keys outside of our section would be ignored silently.
        let mut entries = section.entries().unwrap_or_default().iter();
        if let Some(entry) = entries.find(|entry| KEYS.contains(&&*entry.key)) {
            let problem = format!(
                "`{}` is outside of `{}` and would be ignored; move it into that section",
                entry.key,
                prefix.join(".")
            );
            return refuse(entry, problem);
        }
        section = section.entry(key).map_or(section, |entry| &entry.node);
    }
    Ok(section.clone())
}
