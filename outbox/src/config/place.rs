//! [`Place`]: where in the configuration something stands.

use std::fmt;

/// Where in the configuration something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// In a file.
    File {
        /// The file, as it was named.
        name: String,
        /// Counted from 1.
        line: u32,
        /// Counted from 1, in characters.
        column: u32,
    },
    /// In an environment variable of this name.
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
