//! [`ConfigError`]: the mistake, its place, and the correction.

use std::{io, path::PathBuf, str::Utf8Error};

use super::place::Place;
use crate::handler::BoxError;
use crate::registry::nearest::list;

/// A configuration that cannot be used.
///
/// The text names the place, the mistake and the correction. The error of the operating system or
/// the parser is the [`source`](std::error::Error::source), not part of the text.
///
/// ```
/// # #[cfg(feature = "config")] {
/// use outbox::{Config, config::Format};
///
/// let error = Config::loader()
///     .text(Format::Yaml, "outbox.yaml", "retry:\n  max-retrys: 5\n")
///     .environment([])
///     .load()
///     .unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "outbox.yaml:2:3: unknown key `max-retrys` in `retry`; did you mean `max-retries`?"
/// );
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    #[error("{}: cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The ending of the file name is not a known format.
    #[error("{}: the file name must end in `.toml`, `.yaml` or `.yml`", .path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The file is too long for a configuration.
    #[error(
        "{name}: the file is longer than {limit} bytes; it is not a configuration of this library"
    )]
    TooLarge {
        /// The file.
        name: String,
        /// The greatest allowed length in bytes.
        limit: usize,
    },
    /// The file is not text.
    #[error("{place}: the file is not UTF-8 text; save it as UTF-8")]
    NotUtf8 {
        /// The first byte that is not UTF-8.
        place: Place,
        /// The error of the decoder.
        source: Utf8Error,
    },
    /// The file is empty and has not even a comment.
    #[error(
        "{name}: the file is empty; remove it, or write the settings that differ from the defaults"
    )]
    Empty {
        /// The file.
        name: String,
    },
    /// The file is not a document of its format.
    #[error("{place}: not valid {format}")]
    Syntax {
        /// Where the parser stopped.
        place: Place,
        /// The format.
        format: &'static str,
        /// The error of the parser.
        source: BoxError,
    },
    /// An unknown key.
    #[error(
        "{}unknown key `{key}`{}; {}",
        at(.place),
        section.as_ref().map(|section| format!(" in `{section}`")).unwrap_or_default(),
        nearest.as_ref().map_or_else(
            || format!("valid keys are {}", list(known)),
            |nearest| format!("did you mean `{nearest}`?"),
        ),
    )]
    UnknownKey {
        /// The place, if it is known.
        place: Option<Place>,
        /// As written in the file.
        key: String,
        /// The section. `None`: the top level.
        section: Option<Box<str>>,
        /// The most similar key or environment variable.
        nearest: Option<Box<str>>,
        /// All keys of the section.
        known: &'static [&'static str],
    },
    /// A key of a similar library. Kept for compatibility: the text says what to write here.
    #[error("{}`{key}` is not a key of this library; {instead}", at(.place))]
    NoCounterpart {
        /// The place, if it is known.
        place: Option<Place>,
        /// The key with its sections, as written in the file.
        key: String,
        /// The correction.
        instead: &'static str,
    },
    /// A word that is not one of the valid words.
    #[error(
        "{}`{key}` is `{value}`, but must be one of {}{}",
        at(.place),
        list(known),
        nearest.as_ref().map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default(),
    )]
    UnknownValue {
        /// The place, if it is known.
        place: Option<Place>,
        /// The key with its sections.
        key: String,
        /// As written in the file.
        value: String,
        /// The most similar word.
        nearest: Option<Box<str>>,
        /// All valid words.
        known: &'static [&'static str],
    },
    /// A value of the wrong type, or one that cannot work.
    #[error("{}`{key}` {problem}", at(.place))]
    Invalid {
        /// The place, if it is known.
        place: Option<Place>,
        /// The key with its sections.
        key: String,
        /// The problem, as the rest of a sentence that starts with the key.
        problem: String,
    },
    /// The file contains something that no configuration may contain.
    #[error("{}{problem}", at(.place))]
    Refused {
        /// The place, if it is known.
        place: Option<Place>,
        /// The problem and the correction.
        problem: String,
    },
}

impl ConfigError {
    /// The place of the mistake, if it has one place.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Unreadable { .. }
            | Self::UnknownFormat { .. }
            | Self::TooLarge { .. }
            | Self::Empty { .. } => None,
            Self::NotUtf8 { place, .. } | Self::Syntax { place, .. } => Some(place),
            Self::UnknownKey { place, .. }
            | Self::NoCounterpart { place, .. }
            | Self::UnknownValue { place, .. }
            | Self::Invalid { place, .. }
            | Self::Refused { place, .. } => place.as_ref(),
        }
    }
}

fn at(place: &Option<Place>) -> String {
    place
        .as_ref()
        .map(|place| format!("{place}: "))
        .unwrap_or_default()
}

// `Result<Config, ConfigError>` is in users' signatures, where clippy looks at 128 bytes.
const _: () = assert!(size_of::<ConfigError>() < 128);
