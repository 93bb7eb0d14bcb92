//! [`Place`]: a position in a file, or an environment variable.

use std::fmt;

/// A position in a configuration file, or an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A position in a file.
    File {
        /// The name of the file, as given by the caller.
        name: String,
        /// Counted from 1.
        line: u32,
        /// Counted from 1, in characters.
        column: u32,
    },
    /// An environment variable.
    Variable(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line, column } => write!(f, "{name}:{line}:{column}"),
            Self::Variable(name) => f.write_str(name),
        }
    }
}
