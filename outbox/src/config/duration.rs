//! Reads and writes durations: a whole number in the unit of the key, or text with a unit.

use std::{fmt, marker::PhantomData, time::Duration};

use serde::{
    Deserializer, Serialize as _, Serializer,
    de::{self, Expected, Unexpected, Visitor},
};

/// Long enough for any delay, and short enough that no date calculation overflows: 100 years.
const LONGEST: Duration = Duration::from_secs(36_525 * 24 * 60 * 60);

/// Reads text such as `5s` or `1m 30s`. The error is the rest of a sentence.
fn from_text(text: &str) -> Result<Duration, String> {
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

pub(super) fn from_number(number: i128, unit: fn(u64) -> Duration) -> Result<Duration, String> {
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

/// A value that is a duration, or may be one. `wanted` is for the error.
pub(super) trait Timed: Sized {
    /// The value without a duration, if there is one.
    const NOTHING: Option<Self> = None;

    fn of_duration(duration: Duration) -> Self;

    fn of_text<E: de::Error>(text: &str) -> Result<Self, E> {
        from_text(text).map(Self::of_duration).map_err(E::custom)
    }

    /// A whole number counts the unit.
    fn of_number<E: de::Error>(number: i128, unit: fn(u64) -> Duration) -> Result<Self, E> {
        let duration = from_number(number, unit).map_err(E::custom)?;
        Ok(Self::of_duration(duration))
    }

    fn of_fraction<E: de::Error>(number: f64, wanted: &dyn Expected) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Float(number), wanted))
    }

    fn of_bool<E: de::Error>(on: bool, wanted: &dyn Expected) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Bool(on), wanted))
    }
}

impl Timed for Duration {
    fn of_duration(duration: Duration) -> Self {
        duration
    }
}

impl Timed for Option<Duration> {
    const NOTHING: Option<Self> = Some(None);

    fn of_duration(duration: Duration) -> Self {
        Some(duration)
    }
}

/// Reads a value. A whole number counts the unit.
pub(super) fn read<'de, T: Timed, D: Deserializer<'de>>(
    deserializer: D,
    unit: fn(u64) -> Duration,
    expected: &'static str,
) -> Result<T, D::Error> {
    let wanted = Wanted(unit, expected, PhantomData);
    if T::NOTHING.is_some() {
        return deserializer.deserialize_option(wanted);
    }
    deserializer.deserialize_any(wanted)
}

/// The unit, the expected value in words, and its type.
struct Wanted<T>(fn(u64) -> Duration, &'static str, PhantomData<T>);

impl<'de, T: Timed> Visitor<'de> for Wanted<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_none<E: de::Error>(self) -> Result<T, E> {
        T::NOTHING.ok_or_else(|| E::invalid_type(Unexpected::Option, &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_i128(number.into())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_i128(number.into())
    }

    fn visit_i128<E: de::Error>(self, number: i128) -> Result<T, E> {
        T::of_number(number, self.0)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        T::of_fraction(number, &self)
    }

    fn visit_bool<E: de::Error>(self, on: bool) -> Result<T, E> {
        T::of_bool(on, &self)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::of_text(text)
    }
}

pub(super) fn write<T: Timed + Into<Option<Duration>> + Copy, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match (*value).into().map(to_text) {
        Some(text) if T::NOTHING.is_none() => text.serialize(serializer),
        optional => optional.serialize(serializer),
    }
}

/// For `#[serde(with)]` on a [`Duration`] or an `Option<Duration>`.
pub(super) mod millis {
    pub(in crate::config) use super::write as serialize;
    use super::*;

    pub(in crate::config) fn deserialize<'de, T: Timed, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let expected = "a whole number of milliseconds, or text such as \"5s\"";
        read(deserializer, Duration::from_millis, expected)
    }
}

/// For `#[serde(with)]` on a [`Duration`] or an `Option<Duration>`.
pub(super) mod seconds {
    pub(in crate::config) use super::write as serialize;
    use super::*;

    pub(in crate::config) fn deserialize<'de, T: Timed, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let expected = "a whole number of seconds, or text such as \"5m\"";
        read(deserializer, Duration::from_secs, expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_counts_the_keys_unit_and_text_says_its_own() {
        let of = serde_json::Deserializer::from_str;
        let millis = |text| millis::deserialize::<Duration, _>(&mut of(text));
        let seconds = |text| seconds::deserialize::<Duration, _>(&mut of(text));
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
        assert!(from_number(i128::MAX, Duration::from_millis).is_err());
        assert!(from_number(i128::MIN, Duration::from_millis).is_err());
        assert!(from_text("99999999999999999999999999999years").is_err());
        assert_eq!(
            from_text("100years").unwrap_or_default().as_secs() / 86_400 / 365,
            100
        );
    }
}
