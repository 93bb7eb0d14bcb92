//! [`Verdict`]: a figure with its reference and its goal.

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Value, json};

use crate::{database::Kind, rounds::Measured, usage::Usage};

#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) scenario: String,
    pub(crate) db: Option<Kind>,
    pub(crate) unit: &'static str,
    pub(crate) outcome: Outcome,
    /// Further fields, in order.
    pub(crate) more: Vec<(String, Value)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// The ratio is such that more is better.
    Measured {
        ours: f64,
        reference: f64,
        ratio: f64,
        /// `None` for a figure without a goal.
        goal: Option<f64>,
    },
    /// The scenario does not apply, with the reason.
    Skipped(String),
}

impl Verdict {
    /// A figure of which more is better.
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

    /// A figure of which less is better: the ratio is `reference` divided by `ours`.
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

    pub(crate) fn skipped(
        scenario: impl Into<String>,
        db: Kind,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            scenario: scenario.into(),
            db: Some(db),
            unit: "",
            outcome: Outcome::Skipped(reason.into()),
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

    /// Adds the costs on the server, if the server counts them.
    #[must_use]
    pub(crate) fn used(self, prefix: &str, usage: Option<Usage>) -> Self {
        let Some(usage) = usage else { return self };
        self.with(
            format!("{prefix}wal_bytes_per_record"),
            rounded(usage.log_bytes),
        )
        .with(
            format!("{prefix}commits_per_record"),
            rounded(usage.commits),
        )
    }

    /// Whether the figure has a goal and misses it.
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

/// The JSON form.
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
            Outcome::Skipped(reason) => {
                for name in ["ours", "reference", "ratio", "goal", "ok"] {
                    fields.serialize_entry(name, &Value::Null)?;
                }
                fields.serialize_entry("skipped", reason)?;
            }
        }
        for (name, value) in &self.more {
            fields.serialize_entry(name, value)?;
        }
        fields.end()
    }
}

/// Rounds to four digits: measurements on a noisy machine are not more precise.
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
    fn only_a_ratio_below_its_goal_is_missed() {
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
    fn the_ratio_grows_with_better_figures_also_where_less_is_better() {
        let verdict = |ours| Verdict::less_is_better("memory", None, "MB", (ours, 100.0), 1.0);
        assert!(!verdict(50.0).missed());
        assert!(verdict(101.0).missed());
    }

    #[test]
    fn numbers_are_rounded_to_four_digits() {
        assert_eq!(rounded(123_456.7), json!(123_457.0));
        assert_eq!(rounded(0.98765), json!(0.9877));
        assert_eq!(rounded(f64::NAN), Value::Null);
    }
}
