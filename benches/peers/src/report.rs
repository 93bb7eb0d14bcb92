//! One line of JSON per run.

use std::fmt;

use anyhow::Result;
use serde_json::{Value, json};

use crate::case::{Mode, Outcome, Peer};
use crate::version;

pub(crate) struct Line(Value);

impl Line {
    pub(crate) fn new(
        peer: Peer,
        mode: Mode,
        records: usize,
        wanted: usize,
        outcome: Result<Outcome>,
    ) -> Self {
        let (rate, note) = match outcome {
            Ok(outcome) => {
                let rate = records as f64 / outcome.took.as_secs_f64();
                let mut note = outcome.note;
                if outcome.again > 0 {
                    note += &format!("; {} jobs were handled again", outcome.again);
                }
                if records < wanted {
                    note += &format!("; {records} records instead of {wanted}");
                }
                (Some((rate * 10.0).round() / 10.0), note)
            }
            Err(error) => (None, format!("{error:#}")),
        };
        Self(json!({
            "peer": peer.name,
            "version": version::of(peer.package),
            "language": peer.language,
            "mode": mode.name(),
            "records": records,
            "rate": rate,
            "ok": rate.is_some(),
            "note": note,
        }))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
