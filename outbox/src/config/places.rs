//! [`Places`]: where a configuration file writes the names that are looked up only at start-up.

use std::collections::BTreeMap;

use super::Place;

/// The places of one policy. The loader writes them. A configuration from code has none.
///
/// The program registers error types in code, so the loader cannot know whether a name exists. The places let
/// the error at start-up say where the name is written. They are no setting: two configurations with the same
/// settings are equal, whatever their places.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// The policy itself.
    pub(crate) policy: Option<Place>,
    /// Each name of an error type.
    pub(super) error_names: BTreeMap<String, Place>,
}

impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Places {
    pub(super) fn of_error_name(&self, name: &str) -> Option<&Place> {
        self.error_names.get(name)
    }
}
