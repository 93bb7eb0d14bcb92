//! Two measurements in turns, so that both are subject to the same noise.

use std::time::Duration;

use crate::{progress::Progress, usage::Usage};

/// The measurement of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) records: u64,
    pub(crate) time: Duration,
    pub(crate) usage: Option<Usage>,
}

impl Measured {
    /// Records per second.
    pub(crate) fn rate(&self) -> f64 {
        self.records as f64 / self.time.as_secs_f64().max(f64::EPSILON)
    }
}

/// Runs both sides in turns, `rounds` times.
pub(crate) async fn alternate<Ours, Reference>(
    progress: &Progress,
    scenario: &str,
    rounds: usize,
    mut ours: impl AsyncFnMut() -> anyhow::Result<Ours>,
    mut reference: impl AsyncFnMut() -> anyhow::Result<Reference>,
) -> anyhow::Result<(Vec<Ours>, Vec<Reference>)> {
    let mut measured = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        progress.doing(format!("{scenario}: round {round} of {rounds}, ours"));
        measured.0.push(ours().await?);
        progress.doing(format!("{scenario}: round {round} of {rounds}, reference"));
        measured.1.push(reference().await?);
    }
    progress.clear();
    Ok(measured)
}

/// The fastest run: noise only makes a run slower.
pub(crate) fn best(runs: &[Measured]) -> anyhow::Result<Measured> {
    let best = runs.iter().max_by(|a, b| a.rate().total_cmp(&b.rate()));
    best.copied()
        .ok_or_else(|| anyhow::anyhow!("no round was run"))
}

/// The median, for work that noise can also make faster, such as a compiler run.
pub(crate) fn median(times: &[Duration]) -> Duration {
    percentile(times, 50)
}

/// The shortest time that `percent` of the times do not exceed.
pub(crate) fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values() {
        let times: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 50), Duration::from_millis(100));
        assert_eq!(percentile(&times, 99), Duration::from_millis(198));
        assert_eq!(percentile(&times, 100), Duration::from_millis(200));
        assert_eq!(percentile(&times[..1], 99), Duration::from_millis(200));
        assert_eq!(percentile(&[], 99), Duration::ZERO);
    }

    #[test]
    fn the_fastest_run_counts() {
        let run = |ms| Measured {
            records: 100,
            time: Duration::from_millis(ms),
            usage: None,
        };
        let best = best(&[run(30), run(10), run(20)]).unwrap();
        assert_eq!(best.time, Duration::from_millis(10));
        assert!((best.rate() - 10_000.0).abs() < 1e-6);
    }
}
