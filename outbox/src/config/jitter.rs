//! Reads and writes [`Jitter`]: `jitter: 500`, `jitter: full`, `jitter: 0.5`.
//!
//! A number with a fraction is a share of the delay, and a whole number counts milliseconds, as in the files of
//! similar libraries: `jitter: 1000` is one second. `jitter: 1` is refused, because its author may mean either:
//! the whole delay as a share, or one millisecond, which no file needs. `0` means no jitter either way.

use std::time::Duration;

use serde::{
    Deserializer, Serializer,
    de::{self, Expected},
};

use super::duration::{self, Timed};
use crate::retry::Jitter;

/// The names of [`MODES`].
const WORDS: &[&str] = &["none", "full", "equal", "decorrelated"];
/// The modes without a number.
const MODES: [Jitter; 4] = [
    Jitter::None,
    Jitter::Full,
    Jitter::Equal,
    Jitter::Decorrelated,
];
/// The prefix of a duration that only lengthens delays, as the older policy `jittered` does.
const ABOVE: &str = "above ";

/// The rest of a sentence.
const AMBIGUOUS: &str = "could be a share or milliseconds; write 1.0 for up to the whole delay, \"1ms\" for one \
    millisecond, or \"1s\" for one second";

/// For `#[serde(with)]`.
pub(super) fn serialize<S: Serializer>(jitter: &Jitter, serializer: S) -> Result<S::Ok, S::Error> {
    match *jitter {
        Jitter::Proportional(share) => serializer.serialize_f64(share),
        Jitter::Around(spread) => serializer.serialize_str(&duration::to_text(spread)),
        Jitter::Above(spread) => {
            serializer.serialize_str(&format!("{ABOVE}{}", duration::to_text(spread)))
        }
        Jitter::None | Jitter::Full | Jitter::Equal | Jitter::Decorrelated => {
            let mode = MODES.iter().position(|mode| mode == jitter);
            serializer.serialize_str(WORDS[mode.unwrap_or_default()])
        }
    }
}

/// For `#[serde(with)]`.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Jitter, D::Error> {
    duration::read(
        deserializer,
        Duration::from_millis,
        "a whole number of milliseconds above 1, text such as \"500ms\", a share from 0.0 to 1.0, or one of `none`, `full`, `equal`, `decorrelated`",
    )
}

impl Timed for Jitter {
    fn of_duration(spread: Duration) -> Self {
        if spread.is_zero() {
            return Self::None;
        }
        Self::Around(spread)
    }

    fn of_number<E: de::Error>(number: i128, unit: fn(u64) -> Duration) -> Result<Self, E> {
        if number == 1 {
            return Err(E::custom(AMBIGUOUS));
        }
        let spread = duration::from_number(number, unit).map_err(E::custom)?;
        Ok(Self::of_duration(spread))
    }

    fn of_bool<E: de::Error>(spread: bool, _: &dyn Expected) -> Result<Self, E> {
        Ok(if spread { Self::Full } else { Self::None })
    }

    fn of_fraction<E: de::Error>(share: f64, _: &dyn Expected) -> Result<Self, E> {
        if share < 0.0 {
            return Err(E::custom("is negative; the minimum is 0"));
        }
        if !(0.0..=1.0).contains(&share) {
            return Err(E::custom(
                "is not a share from 0.0 to 1.0; write milliseconds without a fraction",
            ));
        }
        Ok(Self::Proportional(share))
    }

    fn of_text<E: de::Error>(text: &str) -> Result<Self, E> {
        if let Some(mode) = WORDS.iter().position(|word| *word == text) {
            return Ok(MODES[mode]);
        }
        // A text without a digit is a misspelt mode; a text with one is a duration.
        if !text.contains(|c: char| c.is_ascii_digit()) {
            return Err(E::unknown_variant(text, WORDS));
        }
        if text.starts_with('-') {
            return Err(E::custom("is negative; the minimum is 0"));
        }
        match text.strip_prefix(ABOVE) {
            Some(spread) => Duration::of_text(spread).map(Self::Above),
            None => Duration::of_text(text).map(Self::of_duration),
        }
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
            ("2", Jitter::Around(Duration::from_millis(2))),
            ("\"1ms\"", Jitter::Around(Duration::from_millis(1))),
            ("1000", Jitter::Around(Duration::from_secs(1))),
        ] {
            assert_eq!(read(text).unwrap(), jitter, "{text}");
            let written = serde_json::to_string(&Written(jitter)).unwrap();
            assert_eq!(read(&written).unwrap(), jitter, "{written}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "1",
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
