//! [`Node`]: a value of any format, with its place.

use std::sync::Arc;

use super::scalar::{self, Kind};

/// The greatest depth of sections and lists. Our keys need six levels.
pub(super) const DEEPEST: usize = 32;
pub(super) const TOO_DEEP: &str = "sections and lists are nested too deeply; no key needs that";

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) spot: Spot,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// A value that is neither a list nor a section. The text is as written, without quotes.
    Scalar(String, Kind),
    List(Vec<Node>),
    /// In the order of the file, each key once.
    Section(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    /// The place of the key.
    pub(super) spot: Spot,
    pub(super) node: Node,
}

/// A place. An error converts it to a [`Place`](crate::config::Place).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spot {
    /// The value is in no file and no variable.
    Nowhere,
    /// An offset in bytes into the text.
    Byte(usize),
    /// Both counted from 1.
    Mark { line: usize, column: usize },
    /// The name of an environment variable.
    Variable(Arc<str>),
}

impl Node {
    pub(super) const fn empty_section(spot: Spot) -> Self {
        let value = Value::Section(Vec::new());
        Self { value, spot }
    }

    /// The entries of a section. No value counts as an empty section, so that all keys of a section
    /// can be commented out.
    pub(super) fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Section(entries) => Some(entries),
            Value::Scalar(_, Kind::Null) => Some(&[]),
            _ => None,
        }
    }

    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries()?.iter().find(|entry| entry.key == key)
    }

    /// The place of the node at this path, or of its nearest parent in the file.
    pub(super) fn spot_of(&self, path: &[String]) -> &Spot {
        match path {
            [key, rest @ ..] if let Some(entry) = self.entry(key) => entry.node.spot_of(rest),
            _ => &self.spot,
        }
    }

    /// The value, as a part of a sentence.
    pub(super) fn describe(&self) -> String {
        match &self.value {
            Value::Scalar(text, kind) => scalar::describe(text, *kind),
            Value::List(_) => "is a list".to_owned(),
            Value::Section(_) => "is a section".to_owned(),
        }
    }
}
