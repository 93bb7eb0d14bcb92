//! Numbers, times and stored texts as people read them.

use std::time::Duration;

use jiff::Timestamp;
use outbox::clock::{Clock as _, SystemClock};

/// `1,234,567`.
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// `1 record`, `1,234 records`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    if count == 1 {
        return format!("1 {noun}");
    }
    let plural = match noun.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{noun}s"),
    };
    format!("{} {plural}", number(count))
}

/// `250ms`, `3m 2s`, `2h 5m`: the two largest units.
pub(crate) fn duration(time: Duration) -> String {
    let rounded = match time.as_secs() {
        0 => Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        secs => Duration::from_secs(secs),
    };
    let text = humantime::format_duration(rounded).to_string();
    let units: Vec<&str> = text.split(' ').take(2).collect();
    units.join(" ")
}

/// The time since then, by the clock of this machine.
pub(crate) fn age(then: Timestamp) -> String {
    let elapsed = SystemClock.now().duration_since(then);
    Duration::try_from(elapsed).map_or_else(|_| "0s".to_owned(), duration)
}

/// `5m ago`, or nothing.
pub(crate) fn ago(then: Option<Timestamp>) -> String {
    then.map(|then| format!("{} ago", age(then)))
        .unwrap_or_default()
}

/// The time without fractions of a second.
pub(crate) fn to_the_second(then: Timestamp) -> String {
    let second = Timestamp::from_second(then.as_second()).unwrap_or(then);
    second.to_string()
}

/// The text on one line and without control characters, which could change the terminal.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.split(['\n', '\r', '\t'])
        .map(|line| line.chars().map(shown).collect::<String>())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The text, cut to this many characters.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    let text = printable(text);
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
        let texts = [0, 999, 1000, 12_345, 1_234_567].map(number);
        assert_eq!(texts, ["0", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!(counted(1, "delivery"), "1 delivery");
        assert_eq!(counted(2000, "delivery"), "2,000 deliveries");
    }

    #[test]
    fn times_have_two_units() {
        let texts =
            [0, 250, 1999, 182_000, 7_512_000].map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(texts, ["0s", "250ms", "1s", "3m 2s", "2h 5m"]);
    }

    #[test]
    fn a_stored_text_cannot_control_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\nc\0"), "a\u{fffd}[2Jb c\u{fffd}");
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("äöüß", 4), "äöüß");
    }
}
