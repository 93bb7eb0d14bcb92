//! Figures for people: a table, printed row by row.

use std::fmt;

use serde_json::Value;

use crate::{
    database::Kind,
    verdict::{Outcome, Verdict, rounded},
};

/// The first line of the table.
pub(crate) struct Header;

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:24} {:9} {:>12} {:>12} {:11} {:>7} {:>6}",
            "scenario", "database", "ours", "reference", "", "ratio", "goal"
        )
    }
}

/// The lines below the header.
pub(crate) struct Rows<'a>(pub(crate) &'a [Verdict]);

impl fmt::Display for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for verdict in self.0 {
            let (scenario, db) = (&verdict.scenario, verdict.db.map_or("", Kind::name));
            match &verdict.outcome {
                Outcome::Skipped(reason) => writeln!(f, "{scenario:24} {db:9} skipped: {reason}")?,
                Outcome::Measured {
                    ours,
                    reference,
                    ratio,
                    goal,
                } => {
                    let (ours, reference) = (number(*ours), number(*reference));
                    let goal_text = goal.map_or(String::new(), |goal| format!("{goal:.2}"));
                    let unit = verdict.unit;
                    let missed = if verdict.missed() { "  missed" } else { "" };
                    writeln!(
                        f,
                        "{scenario:24} {db:9} {ours:>12} {reference:>12} {unit:11} {ratio:>7.2} {goal_text:>6}{missed}"
                    )?;
                }
            }
            let more: Vec<String> = verdict.more.iter().map(field).collect();
            if !more.is_empty() {
                writeln!(f, "    {}", more.join(", "))?;
            }
        }
        Ok(())
    }
}

pub(crate) fn field((name, value): &(String, Value)) -> String {
    let words = name.replace('_', " ");
    match value {
        Value::String(text) => format!("{words}: {text}"),
        value => format!("{words} {value}"),
    }
}

/// A number with commas between thousands.
pub(crate) fn number(value: f64) -> String {
    if value.abs() < 1_000.0 {
        return rounded(value).to_string();
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(123_456.0), "123,456");
        assert_eq!(number(0.5), "0.5");
    }

    #[test]
    fn a_missed_goal_is_marked() {
        let verdict = |ours| Verdict::more_is_better("a", None, "x", (ours, 10.0), 1.0);
        assert!(Rows(&[verdict(9.0)]).to_string().contains("missed"));
        assert!(!Rows(&[verdict(10.0)]).to_string().contains("missed"));
    }
}
