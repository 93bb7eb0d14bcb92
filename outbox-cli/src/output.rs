//! [`Output`]: what a command prints on the standard output.

use std::{
    fmt,
    io::{self, IsTerminal as _, Write as _},
};

use serde::Serialize;

use crate::failure::Result;

/// Text for people, or JSON for programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    is_json: bool,
}

impl Output {
    pub(crate) fn new(is_json: bool) -> Self {
        Self { is_json }
    }

    /// Whether a person reads the output and can press keys.
    pub(crate) fn is_interactive(self) -> bool {
        !self.is_json && io::stdout().is_terminal() && io::stdin().is_terminal()
    }

    /// Prints one line, or several.
    pub(crate) fn line(self, text: impl fmt::Display) -> Result {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    }

    /// Prints the object on a line of its own, or the text that says the same.
    pub(crate) fn print(self, object: &impl Serialize, text: impl fmt::Display) -> Result {
        if self.is_json {
            self.line(serde_json::to_string(object).map_err(io::Error::other)?)
        } else {
            self.line(text)
        }
    }

    /// Prints one object per item, or a table. `none` is the text for an empty list.
    pub(crate) fn list<T: Serialize>(
        self,
        items: &[T],
        table: fn(&[T]) -> Option<String>,
        none: &str,
    ) -> Result {
        if self.is_json {
            items.iter().try_for_each(|item| self.print(item, ""))
        } else {
            self.line(table(items).as_deref().unwrap_or(none))
        }
    }
}
