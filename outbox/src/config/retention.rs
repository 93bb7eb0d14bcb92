//! [`Retention`]: how long finished records are kept, `retention: 7d`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::duration::{self, Timed};

/// How long completed and discarded records are kept.
///
/// Written as `retention: 7d`, `retention: delete` or `retention: forever`.
///
/// ```
/// use std::time::Duration;
/// use outbox::{Config, config::Retention};
///
/// let config: Config = serde_json::from_str(r#"{ "processing": { "retention": "30d" } }"#)?;
/// assert_eq!(config.processing.retention, Retention::For(Duration::from_secs(30 * 24 * 3600)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retention {
    /// The dispatcher removes records that are older than this, in small batches. Default: seven
    /// days.
    For(Duration),
    /// A record is removed when it completes. This is the fastest, and the table stays small.
    Delete,
    /// Records stay until an operator removes them.
    Forever,
}

impl Default for Retention {
    fn default() -> Self {
        Self::For(Duration::from_secs(7 * 24 * 3600))
    }
}

impl Serialize for Retention {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::For(time) => serializer.serialize_str(&duration::to_text(*time)),
            Self::Delete => serializer.serialize_str("delete"),
            Self::Forever => serializer.serialize_str("forever"),
        }
    }
}

impl<'de> Deserialize<'de> for Retention {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        duration::read(
            deserializer,
            Duration::from_millis,
            "`delete`, `forever`, text such as \"7d\", or a whole number of milliseconds",
        )
    }
}

impl Timed for Retention {
    fn of_duration(duration: Duration) -> Self {
        Self::For(duration)
    }

    fn of_text<E: de::Error>(text: &str) -> Result<Self, E> {
        match text {
            "delete" => Ok(Self::Delete),
            "forever" => Ok(Self::Forever),
            _ if text.starts_with(|first: char| first.is_ascii_digit()) => {
                Duration::of_text(text).map(Self::For)
            }
            _ => Err(E::custom(
                "is not `delete`, `forever` or a duration such as \"7d\"",
            )),
        }
    }
}
