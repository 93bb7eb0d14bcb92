//! One file for each command: its arguments, its JSON fields as its help lists them, and what it does.

pub(crate) mod change;
mod change_by_id;
pub(crate) mod completions;
pub(crate) mod instances;
pub(crate) mod lanes;
pub(crate) mod list;
pub(crate) mod migrate;
pub(crate) mod pause;
pub(crate) mod policy;
pub(crate) mod prune;
pub(crate) mod restore;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod watch;
