//! Reading a [`Config`] from a file or text, and from the environment.
//!
//! [`toml`] and [`yaml`] make a [`node`] tree that knows its places; [`prefix`] finds our part of
//! it; [`env`](mod@env) lays the environment over it; [`read`] hands it to `serde`. A [`fault`]
//! found on the way becomes a [`ConfigError`] here, where the text is known.

mod env;
mod fault;
#[cfg(test)]
mod fuzz;
mod node;
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
    fault::{Fault, Problem},
    node::{Node, Spot},
    read::Reader,
    source::Source,
};
use super::{Config, ConfigError, check};

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `.toml`
    Toml,
    /// `.yaml` or `.yml`
    Yaml,
}

/// Reads a [`Config`] from a file or a text, with environment variables laid over it.
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
/// Without a file or text, everything comes from the environment and the defaults.
#[derive(Debug, Clone, Default)]
#[must_use = "a loader does nothing until `load`"]
pub struct ConfigLoader {
    origin: Option<Origin>,
    environment: Option<Vec<(String, String)>>,
}

#[derive(Debug, Clone)]
enum Origin {
    File(PathBuf),
    Text {
        format: Format,
        name: String,
        text: String,
    },
}

impl Config {
    /// Reads a `.toml`, `.yaml` or `.yml` file, then the environment.
    ///
    /// The keys stand at the top level, or under `outbox`, or under `namastack.outbox`; with
    /// either prefix the file may hold other people's sections too.
    ///
    /// An environment variable is `OUTBOX` and the keys that lead to the value, in capitals, with
    /// two underscores between them and one for each dash: `OUTBOX__RETRY__MAX_RETRIES=5` sets
    /// `retry.max-retries`. Lists are separated by commas.
    ///
    /// ```no_run
    /// let config = outbox::Config::load("outbox.toml")?;
    /// # Ok::<(), outbox::config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// When the file cannot be read, is empty or is not of its format; for an unknown key, with
    /// the nearest valid one; for a value that cannot work. The error says where.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::loader().file(path.as_ref()).load()
    }

    /// Says where to read from, one by one. See [`ConfigLoader`].
    pub fn loader() -> ConfigLoader {
        ConfigLoader::default()
    }
}

impl ConfigLoader {
    /// Reads this file; the end of its name says how it is written. Replaces an earlier file or text.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.origin = Some(Origin::File(path.into()));
        self
    }

    /// Reads this text; `name` is what errors call it. Replaces an earlier file or text.
    pub fn text(
        mut self,
        format: Format,
        name: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        self.origin = Some(Origin::Text {
            format,
            name: name.into(),
            text: text.into(),
        });
        self
    }

    /// Uses these variables instead of the process's own; `[]` for none. Only names that start
    /// with `OUTBOX__` are looked at.
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment = Some(variables.into_iter().collect());
        self
    }

    /// Reads everything and checks it.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load(self) -> Result<Config, ConfigError> {
        let variables = match self.environment {
            Some(variables) => variables,
            None => env::of_process()?,
        };
        let (source, root) = match self.origin {
            None => (Source::none(), Node::empty_section(Spot::Nowhere)),
            Some(origin) => {
                let (format, source) = match origin {
                    Origin::File(path) => Source::read(&path)?,
                    Origin::Text { format, name, text } => (format, Source::of_text(name, text)?),
                };
                let root = match format {
                    Format::Toml => toml::parse(&source),
                    Format::Yaml => yaml::parse(&source),
                }?;
                (source, root)
            }
        };
        from_tree(root, variables).map_err(|fault| fault.into_error(&source))
    }
}

fn from_tree(root: Node, variables: Vec<(String, String)>) -> Result<Config, Fault> {
    let mut section = prefix::strip(root)?;
    env::lay_over(&mut section, variables)?;
    let config = Config::deserialize(Reader(&section))?;
    check::config(&config).map_err(|mistake| {
        let spot = section.spot_of(&mistake.path);
        Fault::at(spot, Problem::Impossible(mistake.problem)).with_path(mistake.path)
    })?;
    Ok(config)
}
