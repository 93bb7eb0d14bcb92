//! [`frame`]: a snapshot as lines of text.

use std::time::Duration;

use super::rates::Rates;
use crate::{
    commands::{instances, lanes, status::error_table},
    snapshot::Snapshot,
    text::{duration, number, shortened},
};

/// At most `height` lines of at most `width` characters.
pub(crate) fn frame(
    snapshot: &Snapshot,
    rates: &Rates,
    width: usize,
    height: usize,
) -> Vec<String> {
    let counts = &snapshot.counts;
    let about = if snapshot.has_exact_counts { "" } else { "~" };
    let lag = snapshot.oldest_pending_seconds.map_or_else(
        || "none".to_owned(),
        |seconds| duration(Duration::from_secs_f64(seconds)),
    );
    let [published, handled] = [rates.published, rates.handled].map(rate);
    let [pending, scheduled, unhandled] =
        [counts.pending, counts.scheduled, counts.unhandled].map(number);
    let [waiting, retrying, failed] = [counts.waiting, counts.retrying, counts.failed].map(number);
    let [completed, discarded] = [counts.completed, counts.discarded].map(number);
    let chart = chart(rates, width.saturating_sub(10).min(60));
    let mut lines = vec![
        format!("published {published}   handled {handled}   lag {lag}"),
        format!("handled   {chart}"),
        String::new(),
        format!("pending {pending}   scheduled {scheduled}   unhandled {unhandled}"),
        format!("waiting {waiting}   retrying {retrying}   failed {failed}"),
        format!("completed {about}{completed}   discarded {about}{discarded}"),
    ];
    if !snapshot.paused.is_empty() {
        lines.push(format!("paused {}", snapshot.paused.join(", ")));
    }
    if snapshot.instances.is_empty() {
        lines.extend([String::new(), instances::NONE.to_owned()]);
    }
    let errors = snapshot.errors.get(..5).unwrap_or(&snapshot.errors);
    let tables = [
        instances::table(&snapshot.instances),
        lanes::table(&snapshot.lanes),
        error_table(errors),
    ];
    for text in tables.into_iter().flatten() {
        lines.push(String::new());
        lines.extend(text.lines().map(str::to_owned));
    }
    lines.truncate(height);
    lines.iter().map(|line| shortened(line, width)).collect()
}

fn rate(rate: Option<f64>) -> String {
    match rate {
        None => "-/s".to_owned(),
        Some(rate) if rate < 10.0 => format!("{rate:.1}/s"),
        Some(rate) => {
            let whole = format!("{rate:.0}").parse().unwrap_or(u64::MAX);
            format!("{}/s", number(whole))
        }
    }
}

/// The last rates as bars. The highest rate has the highest bar.
fn chart(rates: &Rates, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown: Vec<f64> = rates.history.iter().rev().take(width).copied().collect();
    let highest = shown.iter().copied().fold(1.0, f64::max);
    let bar = |rate: &f64| {
        let bars = BARS.into_iter().zip([0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]);
        let mut higher = bars.skip_while(|(_, end)| rate / highest * 7.0 >= *end);
        higher.next().map_or('█', |(bar, _)| bar)
    };
    shown.iter().rev().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_the_newest_rate_at_its_end() {
        let mut rates = Rates::default();
        rates.history.extend([0.0, 0.0, 50.0, 100.0]);
        assert_eq!(chart(&rates, 60), "▁▁▅█");
        assert_eq!(chart(&rates, 2), "▅█");
    }

    #[test]
    fn rates_have_as_many_digits_as_they_need() {
        let texts = [None, Some(0.0), Some(9.94), Some(1234.6)].map(rate);
        assert_eq!(texts, ["-/s", "0.0/s", "9.9/s", "1,235/s"]);
    }
}
