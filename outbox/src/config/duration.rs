//! Reads and writes durations: a whole number in the unit of the key, or text with a unit.

use std::{fmt, time::Duration};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};

/// Long enough for any delay, and short enough that no date calculation overflows: 100 years.
const LONGEST: Duration = Duration::from_secs(36_525 * 24 * 60 * 60);

/// Reads text such as `5s` or `1m 30s`. The error is the rest of a sentence.
pub(super) fn from_text(text: &str) -> Result<Duration, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("has no unit; write a number without quotes, or text such as \"5s\"".into());
    }
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("is not a duration such as \"5s\" or \"1m 30s\": {error}"))?;
    not_too_long(duration)
}

fn not_too_long(duration: Duration) -> Result<Duration, String> {
    if duration > LONGEST {
        return Err("is too long; the maximum is 100 years".into());
    }
    Ok(duration)
}

/// Whole numbers count milliseconds.
pub(super) fn from_millis(number: i128) -> Result<Duration, String> {
    from_number(number, Duration::from_millis)
}

fn from_number(number: i128, unit: fn(u64) -> Duration) -> Result<Duration, String> {
    if number < 0 {
        return Err("is negative; the minimum is 0".into());
    }
    // A number that is too big becomes `u64::MAX`, which is above the limit.
    not_too_long(unit(u64::try_from(number).unwrap_or(u64::MAX)))
}

/// Text that reads back as the same duration, to the nanosecond.
pub(super) fn to_text(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

struct AsText(Duration);

impl Serialize for AsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(self.0))
    }
}

struct Wanted {
    unit: fn(u64) -> Duration,
    expected: &'static str,
}

impl Visitor<'_> for Wanted {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Duration, E> {
        self.visit_i128(number.into())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Duration, E> {
        self.visit_i128(number.into())
    }

    fn visit_i128<E: de::Error>(self, number: i128) -> Result<Duration, E> {
        from_number(number, self.unit).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        from_text(text).map_err(E::custom)
    }
}

macro_rules! written_in {
    ($name:ident, $unit:expr, $expected:literal) => {
        struct $name(Duration);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let (unit, expected): (fn(u64) -> Duration, _) = ($unit, $expected);
                let wanted = Wanted { unit, expected };
                deserializer.deserialize_any(wanted).map(Self)
            }
        }
    };
}
written_in!(
    Millis,
    Duration::from_millis,
    "a whole number of milliseconds, or text such as \"5s\""
);
written_in!(
    Seconds,
    Duration::from_secs,
    "a whole number of seconds, or text such as \"5m\""
);

/// For `#[serde(with)]` on a [`Duration`].
pub(super) mod millis {
    use super::{AsText, Deserialize, Deserializer, Duration, Millis, Serialize, Serializer};

    pub(in crate::config) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        AsText(*duration).serialize(serializer)
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        Millis::deserialize(deserializer).map(|Millis(duration)| duration)
    }
}

macro_rules! optional {
    ($name:ident, $unit:ident) => {
        /// For `#[serde(with)]` on an `Option<Duration>`.
        pub(super) mod $name {
            use super::{
                AsText, Deserialize, Deserializer, Duration, Serialize, Serializer, $unit,
            };

            pub(in crate::config) fn serialize<S: Serializer>(
                duration: &Option<Duration>,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                duration.map(AsText).serialize(serializer)
            }

            pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Option<Duration>, D::Error> {
                let duration = Option::<$unit>::deserialize(deserializer)?;
                Ok(duration.map(|$unit(duration)| duration))
            }
        }
    };
}
optional!(optional_millis, Millis);
optional!(optional_seconds, Seconds);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_counts_the_keys_unit_and_text_says_its_own() {
        let millis = |text| serde_json::from_str::<Millis>(text).map(|Millis(duration)| duration);
        let seconds =
            |text| serde_json::from_str::<Seconds>(text).map(|Seconds(duration)| duration);
        assert_eq!(millis("1500").unwrap(), Duration::from_millis(1500));
        assert_eq!(seconds("300").unwrap(), Duration::from_secs(300));
        assert_eq!(millis("\"1m 30s\"").unwrap(), Duration::from_secs(90));
        assert_eq!(seconds("\"250ms\"").unwrap(), Duration::from_millis(250));
        for wrong in [
            "-1",
            "1.5",
            "\"5000\"",
            "\"\"",
            "\"soon\"",
            "18446744073709551615",
            "true",
        ] {
            assert!(millis(wrong).is_err() && seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_number_is_too_big_to_be_refused() {
        assert!(from_millis(i128::MAX).is_err() && from_millis(i128::MIN).is_err());
        assert!(from_text("99999999999999999999999999999years").is_err());
        assert_eq!(
            from_text("100years").unwrap_or_default().as_secs() / 86_400 / 365,
            100
        );
    }
}
