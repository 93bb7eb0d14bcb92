//! [`Verdict`]: a figure beside what it is compared with, and the goal.

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Value, json};

use crate::{database::Kind, rounds::Measured, usage::Usage};

#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) scenario: String,
    pub(crate) db: Option<Kind>,
    pub(crate) unit: &'static str,
    pub(crate) outcome: Outcome,
    /// What else is worth knowing: further fields, in order.
    pub(crate) more: Vec<(String, Value)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// The ratio is such that more is better.
    Measured {
        ours: f64,
        reference: f64,
        ratio: f64,
        /// None: there is nothing to reach, only to know.
        goal: Option<f64>,
    },
    /// It does not apply, and why.
    Skipped(String),
}

impl Verdict {
    /// More is better.
    pub(crate) fn more_is_better(
        scenario: impl Into<String>,
        db: Option<Kind>,
        unit: &'static str,
        (ours, reference): (f64, f64),
        goal: impl Into<Option<f64>>,
    ) -> Self {
        Self::new(
            scenario,
            db,
            unit,
            (ours, reference),
            ours / reference,
            goal,
        )
    }

    /// Less is better: the ratio is how many times `ours` fits into `reference`.
    pub(crate) fn less_is_better(
        scenario: impl Into<String>,
        db: Option<Kind>,
        unit: &'static str,
        (ours, reference): (f64, f64),
        goal: impl Into<Option<f64>>,
    ) -> Self {
        Self::new(
            scenario,
            db,
            unit,
            (ours, reference),
            reference / ours,
            goal,
        )
    }

    fn new(
        scenario: impl Into<String>,
        db: Option<Kind>,
        unit: &'static str,
        (ours, reference): (f64, f64),
        ratio: f64,
        goal: impl Into<Option<f64>>,
    ) -> Self {
        let outcome = Outcome::Measured {
            ours,
            reference,
            ratio,
            goal: goal.into(),
        };
        Self {
            scenario: scenario.into(),
            db,
            unit,
            outcome,
            more: Vec::new(),
        }
    }

    /// The rates of two runs.
    pub(crate) fn rates(
        scenario: impl Into<String>,
        db: Kind,
        (ours, reference): (Measured, Measured),
        goal: impl Into<Option<f64>>,
    ) -> Self {
        let rates = (ours.rate(), reference.rate());
        let verdict = Self::more_is_better(scenario, Some(db), "records/s", rates, goal)
            .with("records", ours.records);
        verdict
            .used("", ours.usage)
            .used("reference_", reference.usage)
    }

    pub(crate) fn skipped(scenario: impl Into<String>, db: Kind, why: impl Into<String>) -> Self {
        Self {
            scenario: scenario.into(),
            db: Some(db),
            unit: "",
            outcome: Outcome::Skipped(why.into()),
            more: Vec::new(),
        }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.more.push((name.into(), value.into()));
        self
    }

    pub(crate) fn remove_goal(&mut self) {
        if let Outcome::Measured { goal, .. } = &mut self.outcome {
            *goal = None;
        }
    }

    /// What it cost the server, where it counts that.
    #[must_use]
    pub(crate) fn used(self, whose: &str, usage: Option<Usage>) -> Self {
        let Some(usage) = usage else { return self };
        self.with(
            format!("{whose}wal_bytes_per_record"),
            rounded(usage.log_bytes),
        )
        .with(format!("{whose}commits_per_record"), rounded(usage.commits))
    }

    /// Whether there is a goal, and it is not reached.
    pub(crate) fn missed(&self) -> bool {
        match self.outcome {
            Outcome::Measured {
                ratio,
                goal: Some(goal),
                ..
            } => ratio.is_nan() || ratio < goal,
            Outcome::Measured { goal: None, .. } | Outcome::Skipped(_) => false,
        }
    }
}

/// As it is printed for programs.
impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("scenario", &self.scenario)?;
        fields.serialize_entry("db", &self.db.map(Kind::name))?;
        match &self.outcome {
            Outcome::Measured {
                ours,
                reference,
                ratio,
                goal,
            } => {
                fields.serialize_entry("ours", &rounded(*ours))?;
                fields.serialize_entry("reference", &rounded(*reference))?;
                fields.serialize_entry("ratio", &rounded(*ratio))?;
                fields.serialize_entry("goal", goal)?;
                fields.serialize_entry("ok", &!self.missed())?;
                fields.serialize_entry("unit", self.unit)?;
            }
            Outcome::Skipped(why) => {
                for name in ["ours", "reference", "ratio", "goal", "ok"] {
                    fields.serialize_entry(name, &Value::Null)?;
                }
                fields.serialize_entry("skipped", why)?;
            }
        }
        for (name, value) in &self.more {
            fields.serialize_entry(name, value)?;
        }
        fields.end()
    }
}

/// Four digits are more than a noisy machine can tell.
pub(crate) fn rounded(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value.abs() >= 1_000.0 {
        return json!(value.round());
    }
    let text = format!("{value:.3e}");
    json!(text.parse::<f64>().unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_below_the_goal_is_missed_and_one_without_a_goal_never() {
        let verdict = |ours, goal: Option<f64>| {
            Verdict::more_is_better(
                "drain",
                Some(Kind::Postgres),
                "records/s",
                (ours, 100.0),
                goal,
            )
        };
        assert!(verdict(99.0, Some(1.0)).missed());
        assert!(!verdict(100.0, Some(1.0)).missed());
        assert!(!verdict(1.0, None).missed());
        assert!(verdict(f64::NAN, Some(1.0)).missed());
        assert!(!Verdict::skipped("drain", Kind::Sqlite, "why").missed());
    }

    #[test]
    fn where_less_is_better_the_ratio_still_grows_with_what_is_better() {
        let verdict = |ours| Verdict::less_is_better("memory", None, "MB", (ours, 100.0), 1.0);
        assert!(!verdict(50.0).missed());
        assert!(verdict(101.0).missed());
    }

    #[test]
    fn numbers_are_rounded_to_what_can_be_told() {
        assert_eq!(rounded(123_456.7), json!(123_457.0));
        assert_eq!(rounded(0.98765), json!(0.9877));
        assert_eq!(rounded(f64::NAN), Value::Null);
    }
}
