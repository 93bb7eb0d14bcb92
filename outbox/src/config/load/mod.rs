//! Reading a [`Config`] from a file or text, and from the environment.
//!
//! [`toml`] and [`yaml`] make a tree of [`node`]s with their places. [`prefix`] selects our section.
//! [`env`](mod@env) applies the environment variables. [`read`] passes the tree to `serde`, whose
//! mistakes are [`fault`]s until the text of the file turns their places into lines and columns.

mod env;
mod fault;
#[cfg(test)]
mod fuzz;
mod node;
mod places;
mod prefix;
mod read;
mod reference_keys;
mod scalar;
mod source;
mod toml;
mod yaml;

use std::path::{Path, PathBuf};

use serde::Deserialize as _;

use self::{
    node::{Node, Spot},
    read::Reader,
    source::Source,
};
use super::{Config, ConfigError, check};

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `.toml`
    Toml,
    /// `.yaml` or `.yml`
    Yaml,
}

/// Reads a [`Config`] from a file or a text. Environment variables override its values.
///
/// ```
/// use outbox::{Config, config::Format};
///
/// let config = Config::loader()
///     .text(Format::Toml, "built-in", "retry.max-retries = 3")
///     .environment([("OUTBOX__RETRY__MAX_RETRIES".to_owned(), "5".to_owned())])
///     .load()?;
/// assert_eq!(config.retry.default.map(|policy| policy.max_retries), Some(5));
/// # Ok::<(), outbox::config::ConfigError>(())
/// ```
///
/// Without a file or text, all values come from the environment and the defaults.
#[derive(Debug, Clone, Default)]
#[must_use = "a loader does nothing until `load`"]
pub struct ConfigLoader {
    origin: Option<Origin>,
    environment: Option<Vec<(String, String)>>,
}

#[derive(Debug, Clone)]
enum Origin {
    File(PathBuf),
    /// The name and the text.
    Text(Format, String, String),
}

impl Config {
    /// Reads a `.toml`, `.yaml` or `.yml` file, then the environment.
    ///
    /// The keys are at the top level, or in the section `outbox`, or in `namastack.outbox`. With one
    /// of these sections, the file may have sections of other programs too.
    ///
    /// The name of an environment variable is `OUTBOX` and the keys that lead to the value, in
    /// capitals. Two underscores separate keys, and one underscore replaces a dash:
    /// `OUTBOX__RETRY__MAX_RETRIES=5` sets `retry.max-retries`. Commas separate the items of a list.
    ///
    /// ```no_run
    /// let config = outbox::Config::load("outbox.toml")?;
    /// # Ok::<(), outbox::config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, is empty or is not valid; if a key is unknown; if a value cannot
    /// work. The error has the place, and the most similar valid key.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::loader().file(path.as_ref()).load()
    }

    /// A loader with more options. See [`ConfigLoader`].
    pub fn loader() -> ConfigLoader {
        ConfigLoader::default()
    }
}

impl ConfigLoader {
    /// Reads this file. The ending of its name decides the format. Replaces an earlier file or text.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.origin = Some(Origin::File(path.into()));
        self
    }

    /// Reads this text. Errors use `name` as its file name. Replaces an earlier file or text.
    pub fn text(
        mut self,
        format: Format,
        name: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        self.origin = Some(Origin::Text(format, name.into(), text.into()));
        self
    }

    /// Uses these variables instead of the environment of the process; `[]` for none. Names that do
    /// not start with `OUTBOX__` are ignored.
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment = Some(variables.into_iter().collect());
        self
    }

    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load(self) -> Result<Config, ConfigError> {
        let variables = match self.environment {
            Some(variables) => variables,
            None => env::of_process()?,
        };
        let (source, root) = match self.origin {
            None => (Source::default(), Node::empty_section(Spot::Nowhere)),
            Some(origin) => {
                let (format, source) = match origin {
                    Origin::File(path) => Source::read(&path)?,
                    Origin::Text(format, name, text) => (format, Source::of_text(name, text)?),
                };
                let root = match format {
                    Format::Toml => toml::parse(&source),
                    Format::Yaml => yaml::parse(&source),
                }?;
                (source, root)
            }
        };
        let mut section = prefix::strip(&root, &source)?;
        env::apply(&mut section, variables)?;
        let mut config = Config::deserialize(Reader::root(&section))
            .map_err(|fault| fault.into_error(&source))?;
        places::remember(&mut config, &section, &source);
        check::config(&config).map_err(|mistake| ConfigError::Invalid {
            place: source.place(section.spot_of(&mistake.path)),
            key: fault::dotted(&mistake.path),
            problem: mistake.problem,
        })?;
        Ok(config)
    }
}
