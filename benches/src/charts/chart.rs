//! The charts of the page, as SVG.

use std::fmt::Write as _;

use super::escape;
use crate::{
    database::Kind,
    table::number,
    verdict::{Outcome, Verdict},
};

/// The left end of bars, their maximum length, and the height of a row, in pixels.
const LEFT: f64 = 230.0;
const LONGEST: f64 = 520.0;
const ROW: f64 = 26.0;
const WIDTH: f64 = 860.0;
/// Bars of ratios above this multiple of the goal are cut off.
const FARTHEST: f64 = 2.0;

/// Each ratio divided by its goal; the dashed line is the goal.
pub(super) fn ratios(verdicts: &[Verdict]) -> String {
    let mut rows = String::new();
    let mut top = 20.0;
    for verdict in verdicts {
        let Outcome::Measured {
            ratio,
            goal: Some(goal),
            ..
        } = verdict.outcome
        else {
            continue;
        };
        let of_goal = ratio / goal;
        let length = LONGEST * of_goal.clamp(0.0, FARTHEST) / FARTHEST;
        let colour = if verdict.missed() { "missed" } else { "good" };
        let cut = if of_goal > FARTHEST { " →" } else { "" };
        let db = verdict.db.map_or("", Kind::name);
        let label = escape(&format!("{} {db}", verdict.scenario));
        // Writing to a string cannot fail.
        let _ = writeln!(
            rows,
            "{}<rect x=\"{LEFT}\" y=\"{top}\" width=\"{length:.1}\" height=\"{:.0}\" rx=\"2\" fill=\"var(--{colour})\"/>{}",
            text(LEFT - 8.0, top + 13.0, "end", &label),
            ROW - 8.0,
            text(
                LEFT + length + 6.0,
                top + 13.0,
                "start",
                &format!("{ratio:.2} of {goal:.2}{cut}")
            ),
        );
        top += ROW;
    }
    let goal = LEFT + LONGEST / FARTHEST;
    let _ = writeln!(
        rows,
        "<line x1=\"{goal}\" x2=\"{goal}\" y1=\"14\" y2=\"{top}\" stroke=\"var(--text)\" stroke-dasharray=\"3 3\"/>{}",
        text(goal, 10.0, "middle", "goal")
    );
    figure(
        &rows,
        top + 6.0,
        "more is better; the dashed line is the goal",
    )
}

/// Our rates and the references on one database; `None` without figures.
pub(super) fn rates(verdicts: &[Verdict], kind: Kind) -> Option<String> {
    let pairs: Vec<(&str, f64, f64)> = verdicts
        .iter()
        .filter(|verdict| verdict.db == Some(kind) && verdict.unit == "records/s")
        .filter_map(|verdict| match verdict.outcome {
            Outcome::Measured {
                ours, reference, ..
            } => Some((verdict.scenario.as_str(), ours, reference)),
            Outcome::Skipped(_) => None,
        })
        .collect();
    let highest = pairs
        .iter()
        .map(|(_, ours, reference)| ours.max(*reference))
        .fold(0.0_f64, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let mut rows = String::new();
    let mut top = 6.0;
    for (scenario, ours, reference) in pairs {
        let _ = writeln!(
            rows,
            "{}",
            text(LEFT - 8.0, top + 17.0, "end", &escape(scenario))
        );
        for (value, colour) in [(ours, "ours"), (reference, "reference")] {
            let length = LONGEST * value / highest;
            let _ = writeln!(
                rows,
                "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{length:.1}\" height=\"11\" rx=\"2\" fill=\"var(--{colour})\"/>{}",
                text(LEFT + length + 6.0, top + 10.0, "start", &number(value))
            );
            top += 13.0;
        }
        top += 10.0;
    }
    Some(figure(&rows, top, "above: ours; below: the reference"))
}

fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"var(--text)\">{text}</text>"
    )
}

fn figure(rows: &str, height: f64, caption: &str) -> String {
    format!(
        "<figure><svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\">\n{rows}</svg>\
         <figcaption>{caption}</figcaption></figure>\n"
    )
}
