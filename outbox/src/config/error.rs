//! [`ConfigError`]: what is wrong, where, and what to write instead.

use std::{io, path::PathBuf, str::Utf8Error};

use super::place::Place;
use crate::handler::BoxError;
use crate::registry::nearest::list;

/// A configuration that cannot be used.
///
/// The text names the place, the mistake and the way out:
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
    #[error("{}: cannot be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The name of the file does not say what is in it.
    #[error(
        "{}: the name must end in `.toml`, `.yaml` or `.yml`, which says how to read it", .path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The file is longer than a configuration can sensibly be.
    #[error("{name}: longer than {limit} bytes, so it is no configuration of this library")]
    TooLarge {
        /// The file.
        name: String,
        /// The longest that is read.
        limit: usize,
    },
    /// The file is not text.
    #[error("{place}: the file is not UTF-8 text; save it as UTF-8")]
    NotUtf8 {
        /// The first byte that is none.
        place: Place,
        /// Why not.
        source: Utf8Error,
    },
    /// Nothing in it, not even a comment.
    #[error("{name}: the file is empty; remove it, or write what differs from the defaults")]
    Empty {
        /// The file.
        name: String,
    },
    /// Not a document of its format.
    #[error("{place}: not valid {format}: {source}")]
    Syntax {
        /// Where the parser gave up.
        place: Place,
        /// `TOML` or `YAML`.
        format: &'static str,
        /// What the parser says.
        source: BoxError,
    },
    /// A key that there is not.
    #[error(
        "{}unknown key `{key}`{}; {}",
        at(.place),
        section.as_ref().map(|section| format!(" in `{section}`")).unwrap_or_default(),
        nearest.as_ref().map_or_else(
            || format!("the keys there are {}", list(known)),
            |nearest| format!("did you mean `{nearest}`?"),
        ),
    )]
    UnknownKey {
        /// Where it stands.
        place: Option<Place>,
        /// As it was written.
        key: String,
        /// The section it stands in, unless that is the whole.
        section: Option<Box<str>>,
        /// The key, or environment variable, that is most like it.
        nearest: Option<Box<str>>,
        /// All keys of that section.
        known: &'static [&'static str],
    },
    /// A key of a similar library that has no counterpart here.
    #[error("{}`{key}` has no counterpart of that name here; {instead}", at(.place))]
    NoCounterpart {
        /// Where it stands.
        place: Option<Place>,
        /// With its sections, as it was written.
        key: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// A word that is none of those possible.
    #[error(
        "{}`{key}` is `{value}`, but has to be one of {}{}",
        at(.place),
        list(known),
        nearest.as_ref().map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default(),
    )]
    UnknownValue {
        /// Where it stands.
        place: Option<Place>,
        /// With its sections.
        key: String,
        /// As it was written.
        value: String,
        /// The word that is most like it.
        nearest: Option<Box<str>>,
        /// All that are possible.
        known: &'static [&'static str],
    },
    /// A value of the wrong type, or one that cannot work.
    #[error("{}`{key}` {problem}", at(.place))]
    Invalid {
        /// Where it stands.
        place: Option<Place>,
        /// With its sections.
        key: String,
        /// What is wrong with the value, as the rest of a sentence that starts with the key.
        problem: String,
    },
    /// Something that a configuration may not contain, whatever the key.
    #[error("{}{problem}", at(.place))]
    Refused {
        /// Where it stands.
        place: Option<Place>,
        /// What it is and what to do instead.
        problem: String,
    },
}

impl ConfigError {
    /// Where the mistake is, if it is at one place.
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
