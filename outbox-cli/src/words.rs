//! Numbers, times and stored texts for people.

use std::time::Duration;

use jiff::Timestamp;
use outbox::clock::{Clock as _, SystemClock};

/// `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 record`, `1,234 records`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    let plural = match what.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{what}s"),
    };
    let what = if number == 1 { what } else { &plural };
    format!("{} {what}", count(number))
}

/// `250ms`, `3m 2s`, `2h 5m`: two units are enough to judge.
pub(crate) fn span(time: Duration) -> String {
    let rounded = match time.as_secs() {
        0 => Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        secs => Duration::from_secs(secs),
    };
    let text = humantime::format_duration(rounded).to_string();
    let units: Vec<&str> = text.split(' ').take(2).collect();
    units.join(" ")
}

/// How long ago that was by this machine's clock.
pub(crate) fn ago(then: Timestamp) -> String {
    let elapsed = SystemClock.now().duration_since(then);
    Duration::try_from(elapsed).map_or_else(|_| "now".to_owned(), span)
}

/// The moment, to the second.
pub(crate) fn moment(then: Timestamp) -> String {
    let second = Timestamp::from_second(then.as_second()).unwrap_or(then);
    second.to_string()
}

/// What somebody stored, on one line, so that it cannot do anything to a terminal.
pub(crate) fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.split(['\n', '\r', '\t'])
        .map(|line| line.chars().map(shown).collect::<String>())
        .collect::<Vec<_>>()
        .join(" ")
}

/// At most so many characters.
pub(crate) fn short(text: &str, longest: usize) -> String {
    let text = plain(text);
    if text.chars().count() <= longest {
        return text;
    }
    let start: String = text.chars().take(longest.saturating_sub(1)).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let texts = [0, 999, 1000, 12_345, 1_234_567].map(count);
        assert_eq!(texts, ["0", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!(counted(1, "delivery"), "1 delivery");
        assert_eq!(counted(2000, "delivery"), "2,000 deliveries");
    }

    #[test]
    fn times_have_two_units() {
        let texts = [0, 250, 1999, 182_000, 7_512_000].map(|ms| span(Duration::from_millis(ms)));
        assert_eq!(texts, ["0s", "250ms", "1s", "3m 2s", "2h 5m"]);
    }

    #[test]
    fn what_is_stored_does_nothing_to_a_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\nc\0"), "a\u{fffd}[2Jb c\u{fffd}");
        assert_eq!(short("abcdef", 4), "abc…");
        assert_eq!(short("äöüß", 4), "äöüß");
    }
}
