//! [`RawEvent`]: an event without a Rust type.

use serde::de::IgnoredAny;

use crate::{
    outbox::clock::Clock,
    record::{EventError, LONGEST_NAME, Record},
};

/// The type parameter of [`Schedule`](crate::Schedule) for an event that is given as a name and JSON
/// text; see [`Outbox::schedule_raw`](crate::Outbox::schedule_raw).
#[derive(Debug)]
#[non_exhaustive]
pub struct RawEvent;

impl Record {
    /// A record of version 1 with this name and payload. `json` must be the text of one JSON value.
    pub(crate) fn of_raw(event: &str, json: String, clock: &dyn Clock) -> Result<Self, EventError> {
        if !may_be_name(event) {
            return Err(EventError::BadName {
                event: event.to_owned(),
            });
        }
        serde_json::from_str::<IgnoredAny>(&json).map_err(|source| EventError::NotJson {
            event: event.to_owned(),
            source,
        })?;
        Ok(Self::new(event, 1, None, json, clock))
    }
}

/// The rule that the macro checks for names in attributes.
pub(crate) fn may_be_name(text: &str) -> bool {
    (1..=LONGEST_NAME).contains(&text.len())
        && text.trim() == text
        && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::clock::ManualClock;

    fn of(event: &str, json: &str) -> Result<Record, EventError> {
        Record::of_raw(event, json.to_owned(), &ManualClock::default())
    }

    #[test]
    fn every_json_value_is_a_payload_and_keeps_its_text() {
        for json in [
            "{}",
            " {\"a\" :1.50}\n",
            "[1,2]",
            "null",
            "\"text\"",
            "12e3",
        ] {
            let record = of("order.created", json).unwrap();
            assert_eq!((&*record.event, record.version), ("order.created", 1));
            assert_eq!(record.payload, json);
            assert_eq!(record.key, record.event_id.to_string());
        }
    }

    #[test]
    fn text_that_is_not_one_json_value_is_refused() {
        for text in [
            "",
            "hello",
            "{",
            "{} {}",
            "{'a':1}",
            "{\"a\":1,}",
            "NaN",
            "\u{feff}{}",
        ] {
            assert!(
                matches!(of("e", text), Err(EventError::NotJson { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn a_name_follows_the_rule_of_the_attribute() {
        let (long, too_long) = ("x".repeat(255), "x".repeat(256));
        for name in ["a", "order.created", "größe 7", &*long] {
            assert!(of(name, "{}").is_ok(), "{name}");
        }
        for name in ["", " ", " a", "a\n", "a\0b", &*too_long] {
            assert!(
                matches!(of(name, "{}"), Err(EventError::BadName { .. })),
                "{name}"
            );
        }
    }
}
