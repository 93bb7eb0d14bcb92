//! A look as lines of text.

use super::reading::{History, Now};
use crate::{
    instances, lanes,
    status::of_errors,
    words::{count, plain, short, span},
};

/// The lines of one look, as many as fit and none wider.
pub(crate) fn frame(now: &Now, history: &History, width: usize, height: usize) -> Vec<String> {
    let reading = &now.reading;
    let counts = &reading.counts;
    let about = if counts.exact { "" } else { "~" };
    let lag = reading.oldest.map_or_else(|| "none".to_owned(), span);
    let mut lines = vec![
        format!(
            "published {}   handled {}   lag {lag}",
            rate(now.published),
            rate(now.handled)
        ),
        format!(
            "handled   {}",
            chart(history, width.saturating_sub(10).min(60))
        ),
        String::new(),
        format!(
            "pending {}   scheduled {}   unhandled {}",
            count(counts.pending),
            count(counts.scheduled),
            count(counts.unhandled)
        ),
        format!(
            "waiting {}   retrying {}   failed {}",
            count(counts.waiting),
            count(counts.retrying),
            count(counts.failed)
        ),
        format!(
            "completed {about}{}   discarded {about}{}",
            count(counts.completed),
            count(counts.discarded)
        ),
    ];
    if !reading.paused.is_empty() {
        lines.push(format!("paused {}", plain(&reading.paused.join(", "))));
    }
    lines.push(String::new());
    if reading.instances.is_empty() {
        lines.push("no instance is running: nothing is delivered".to_owned());
    } else {
        lines.extend(instances::table(&reading.instances).lines());
    }
    if !reading.lanes.is_empty() {
        lines.push(String::new());
        lines.extend(lanes::table(&reading.lanes).lines());
    }
    if let Some(errors) = of_errors(reading.errors.get(..5).unwrap_or(&reading.errors)) {
        lines.push(String::new());
        lines.extend(errors.lines().map(str::to_owned));
    }
    lines.truncate(height);
    lines.iter().map(|line| short(line, width)).collect()
}

fn rate(rate: Option<f64>) -> String {
    match rate {
        None => "-/s".to_owned(),
        Some(rate) if rate < 10.0 => format!("{rate:.1}/s"),
        Some(rate) => format!("{}/s", count(whole(rate))),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is never below zero, and people do not read more digits"
)]
fn whole(rate: f64) -> u64 {
    rate.round() as u64
}

/// The last rates, as high as they are among each other.
fn chart(history: &History, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let rates: Vec<f64> = history.rates.iter().rev().take(width).copied().collect();
    let highest = rates.iter().copied().fold(1.0, f64::max);
    let bar = |rate: &f64| {
        let height = whole(rate / highest * 7.0);
        let height = usize::try_from(height).unwrap_or(0);
        BARS.get(height).copied().unwrap_or('█')
    };
    rates.iter().rev().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_the_newest_rate_at_its_end() {
        let mut history = History::default();
        history.rates.extend([0.0, 0.0, 50.0, 100.0]);
        assert_eq!(chart(&history, 60), "▁▁▅█");
        assert_eq!(chart(&history, 2), "▅█");
    }

    #[test]
    fn rates_have_as_many_digits_as_they_need() {
        let texts = [None, Some(0.0), Some(9.94), Some(1234.6)].map(rate);
        assert_eq!(texts, ["-/s", "0.0/s", "9.9/s", "1,235/s"]);
    }
}
