//! What is printed on the standard output.

use std::{
    fmt,
    io::{self, IsTerminal as _, Write as _},
};

use serde::Serialize;

use crate::failure::Failure;

/// Text for people, or JSON for programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether JSON is wanted.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Whether a person looks at it and can press keys.
    pub(crate) fn is_interactive(self) -> bool {
        !self.json && io::stdout().is_terminal() && io::stdin().is_terminal()
    }

    /// One line, or several.
    pub(crate) fn line(self, text: impl fmt::Display) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    }

    /// One object on a line of its own.
    pub(crate) fn object(self, object: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(object).map_err(io::Error::other)?;
        self.line(text)
    }

    /// The object, or the text that says the same.
    pub(crate) fn either(
        self,
        object: &impl Serialize,
        text: impl fmt::Display,
    ) -> Result<(), Failure> {
        if self.json {
            self.object(object)
        } else {
            self.line(text)
        }
    }
}
