//! [`Node`]: a value of any format, with the place where it stands.

use std::sync::Arc;

use super::scalar::Scalar;

/// How deep sections and lists may lie in each other. Ours need six levels.
pub(super) const DEEPEST: usize = 32;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) spot: Spot,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Scalar(Scalar),
    List(Vec<Node>),
    /// In the order of the file, each key once.
    Section(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    /// Of the key.
    pub(super) spot: Spot,
    pub(super) node: Node,
}

/// A place, in the form that costs nothing until an error needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spot {
    /// Nobody wrote it.
    Nowhere,
    /// An offset into the text.
    Byte(usize),
    /// Both counted from 1.
    Mark { line: usize, column: usize },
    /// In the environment variable of this name.
    Variable(Arc<str>),
}

impl Node {
    pub(super) const fn empty_section(spot: Spot) -> Self {
        let value = Value::Section(Vec::new());
        Self { value, spot }
    }

    /// Of a section; nothing is an empty one, so that all keys of a section can be commented out.
    pub(super) fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Section(entries) => Some(entries),
            Value::Scalar(scalar) if scalar.is_null() => Some(&[]),
            Value::Scalar(_) | Value::List(_) => None,
        }
    }

    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries()?.iter().find(|entry| entry.key == key)
    }

    /// Where the path leads, as far as it was written.
    pub(super) fn spot_of(&self, path: &[String]) -> Spot {
        let mut node = self;
        for key in path {
            match node.entry(key) {
                Some(entry) => node = &entry.node,
                None => break,
            }
        }
        node.spot.clone()
    }

    /// What it is, as a piece of a sentence.
    pub(super) fn describe(&self) -> String {
        match &self.value {
            Value::Scalar(scalar) => scalar.describe(),
            Value::List(_) => "is a list".to_owned(),
            Value::Section(_) => "is a section".to_owned(),
        }
    }
}
