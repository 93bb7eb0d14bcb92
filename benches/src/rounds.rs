//! Alternating rounds of two measurements.

use std::time::{Duration, Instant};

/// How long a piece of work takes.
pub(crate) fn timed<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let result = work()?;
    let took = start.elapsed();
    std::hint::black_box(result);
    Ok(took)
}

/// The times of both, measured in turns so that a slow moment of the machine hits both.
pub(crate) fn alternate(
    rounds: usize,
    mut ours: impl FnMut() -> anyhow::Result<Duration>,
    mut reference: impl FnMut() -> anyhow::Result<Duration>,
) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    let mut times = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        times.0.push(ours()?);
        times.1.push(reference()?);
    }
    Ok(times)
}

/// For work whose true cost is disturbed only upwards.
pub(crate) fn best(times: &[Duration]) -> Duration {
    times.iter().min().copied().unwrap_or_default()
}

/// For work that varies both ways, such as a compiler run.
pub(crate) fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
