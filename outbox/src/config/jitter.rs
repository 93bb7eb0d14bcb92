//! Reads and writes [`Jitter`]: `jitter: 500`, `jitter: full`, `jitter: 0.5`.

use std::{fmt, time::Duration};

use serde::{
    Deserializer, Serializer,
    de::{self, Visitor},
};

use super::duration;
use crate::retry::Jitter;

/// The names of the modes.
const WORDS: &[&str] = &["none", "full", "equal", "decorrelated"];
/// The prefix of a duration that only lengthens delays, as the older policy `jittered` does.
const ABOVE: &str = "above ";

/// For `#[serde(with)]`.
pub(super) fn serialize<S: Serializer>(jitter: &Jitter, serializer: S) -> Result<S::Ok, S::Error> {
    match *jitter {
        Jitter::None => serializer.serialize_str("none"),
        Jitter::Full => serializer.serialize_str("full"),
        Jitter::Equal => serializer.serialize_str("equal"),
        Jitter::Decorrelated => serializer.serialize_str("decorrelated"),
        Jitter::Proportional(share) => serializer.serialize_f64(share),
        Jitter::Around(spread) => serializer.serialize_str(&duration::to_text(spread)),
        Jitter::Above(spread) => {
            serializer.serialize_str(&format!("{ABOVE}{}", duration::to_text(spread)))
        }
    }
}

/// For `#[serde(with)]`.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Jitter, D::Error> {
    deserializer.deserialize_any(Wanted)
}

struct Wanted;

impl Visitor<'_> for Wanted {
    type Value = Jitter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a whole number of milliseconds, text such as \"500ms\", a share from 0.0 to 1.0, or one of `none`, `full`, `equal`, `decorrelated`",
        )
    }

    fn visit_bool<E: de::Error>(self, spread: bool) -> Result<Jitter, E> {
        Ok(if spread { Jitter::Full } else { Jitter::None })
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Jitter, E> {
        self.visit_i128(number.into())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Jitter, E> {
        self.visit_i128(number.into())
    }

    fn visit_i128<E: de::Error>(self, number: i128) -> Result<Jitter, E> {
        duration::from_millis(number).map(around).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, share: f64) -> Result<Jitter, E> {
        if share < 0.0 {
            return Err(E::custom("is negative; the minimum is 0"));
        }
        if !(0.0..=1.0).contains(&share) {
            return Err(E::custom(
                "is not a share from 0.0 to 1.0; write milliseconds without a fraction",
            ));
        }
        Ok(Jitter::Proportional(share))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Jitter, E> {
        Ok(match text {
            "none" => Jitter::None,
            "full" => Jitter::Full,
            "equal" => Jitter::Equal,
            "decorrelated" => Jitter::Decorrelated,
            // A text without a digit is a misspelt mode; a text with one is a duration.
            _ if !text.contains(|c: char| c.is_ascii_digit()) => {
                return Err(E::unknown_variant(text, WORDS));
            }
            _ if text.starts_with('-') => return Err(E::custom("is negative; the minimum is 0")),
            _ => match text.strip_prefix(ABOVE) {
                Some(spread) => Jitter::Above(duration::from_text(spread).map_err(E::custom)?),
                None => around(duration::from_text(text).map_err(E::custom)?),
            },
        })
    }
}

fn around(spread: Duration) -> Jitter {
    if spread.is_zero() {
        Jitter::None
    } else {
        Jitter::Around(spread)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Written(#[serde(with = "super")] Jitter);

    fn read(text: &str) -> Result<Jitter, serde_json::Error> {
        serde_json::from_str(text).map(|Written(jitter)| jitter)
    }

    #[test]
    fn each_way_of_writing_means_its_mode() {
        let half_second = Duration::from_millis(500);
        for (text, jitter) in [
            ("500", Jitter::Around(half_second)),
            ("\"500ms\"", Jitter::Around(half_second)),
            ("\"above 500ms\"", Jitter::Above(half_second)),
            ("0", Jitter::None),
            ("false", Jitter::None),
            ("\"none\"", Jitter::None),
            ("true", Jitter::Full),
            ("\"full\"", Jitter::Full),
            ("\"equal\"", Jitter::Equal),
            ("\"decorrelated\"", Jitter::Decorrelated),
            ("0.25", Jitter::Proportional(0.25)),
            ("1.0", Jitter::Proportional(1.0)),
            ("1", Jitter::Around(Duration::from_millis(1))),
        ] {
            assert_eq!(read(text).unwrap(), jitter, "{text}");
            let written = serde_json::to_string(&Written(jitter)).unwrap();
            assert_eq!(read(&written).unwrap(), jitter, "{written}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "-1",
            "-0.5",
            "1.5",
            "\"-5s\"",
            "\"some\"",
            "\"5\"",
            "null",
            "[]",
            "\"above\"",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
