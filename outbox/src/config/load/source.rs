//! [`Source`]: the text of a file with its name; finds the place of an offset.

use std::{fs::File, io::Read as _, path::Path};

use super::{Format, node::Spot};
use crate::config::{ConfigError, Place};

/// A text that is not empty, not too long, and starts with no byte-order mark. The default is for a
/// configuration without a file.
#[derive(Default)]
pub(super) struct Source {
    name: String,
    text: String,
}

impl Source {
    /// The longest file, in bytes. A configuration has a page or two; a longer file was given by
    /// mistake.
    pub(super) const LONGEST: usize = 1024 * 1024;

    pub(super) fn read(path: &Path) -> Result<(Format, Self), ConfigError> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let format = match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("toml") => Format::Toml,
            Some("yaml" | "yml") => Format::Yaml,
            _ => {
                let path = path.to_owned();
                return Err(ConfigError::UnknownFormat { path });
            }
        };
        // Reads at most one byte more than allowed.
        let limit = Self::LONGEST as u64 + 1;
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(limit).read_to_end(&mut bytes))
            .map_err(|source| ConfigError::Unreadable {
                path: path.to_owned(),
                source,
            })?;
        let source = Self::of_bytes(path.display().to_string(), bytes)?;
        Ok((format, source))
    }

    pub(super) fn of_bytes(name: String, bytes: Vec<u8>) -> Result<Self, ConfigError> {
        match String::from_utf8(bytes) {
            Ok(text) => Self::of_text(name, text),
            Err(error) => {
                let source = error.utf8_error();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let place = Self { name, text }.place_of_byte(source.valid_up_to());
                Err(ConfigError::NotUtf8 { place, source })
            }
        }
    }

    pub(super) fn of_text(name: String, mut text: String) -> Result<Self, ConfigError> {
        if text.len() > Self::LONGEST {
            let limit = Self::LONGEST;
            return Err(ConfigError::TooLarge { name, limit });
        }
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        if text.trim().is_empty() {
            return Err(ConfigError::Empty { name });
        }
        Ok(Self { name, text })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn place(&self, spot: &Spot) -> Option<Place> {
        match spot {
            Spot::Nowhere => None,
            Spot::Byte(offset) => Some(self.place_of_byte(*offset)),
            Spot::Mark { line, column } => Some(self.place_at(*line, *column)),
            Spot::Variable(name) => Some(Place::Variable(name.to_string())),
        }
    }

    pub(super) fn refuse(&self, spot: &Spot, problem: impl Into<String>) -> ConfigError {
        ConfigError::Refused {
            place: self.place(spot),
            problem: problem.into(),
        }
    }

    pub(super) fn place_of_byte(&self, offset: usize) -> Place {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let (lines, last) = match before.rsplit_once('\n') {
            Some((lines, last)) => (lines.matches('\n').count() + 1, last),
            None => (0, before),
        };
        self.place_at(lines + 1, last.chars().count() + 1)
    }

    /// Line and column count from 1.
    pub(super) fn place_at(&self, line: usize, column: usize) -> Place {
        // A text has at most `LONGEST` lines and columns.
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Place::File {
            name: self.name.clone(),
            line: count(line),
            column: count(column),
        }
    }
}
