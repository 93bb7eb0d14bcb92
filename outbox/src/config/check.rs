//! Finds values that `serde` accepts and that cannot work.
//!
//! The checks take the plain data, so a configuration from code is checked like one from a file. For
//! a file, the loader finds the place of a mistake by its path. Back-offs that are not selected
//! are checked too, for example for a delay of zero.

use std::time::Duration;

use humantime::format_duration as words;

use super::{Config, PolicyConfig, PolicyKind, Retention, sections::MAX_PARTITIONS};
use crate::retry::Jitter;

/// A value that cannot work.
pub(super) struct Mistake {
    /// The keys that lead to the value, outermost first.
    pub(super) path: Vec<String>,
    /// The rest of a sentence that starts with the path.
    pub(super) problem: String,
}

type Checked = Result<(), Mistake>;

pub(super) fn config(config: &Config) -> Checked {
    positive("poll-interval", config.poll_interval)?;
    lease(config)?;
    if let Retention::For(time) = config.processing.retention {
        positive("processing.retention", time)?;
    }
    if config.processing.max_in_memory < 16 {
        return mistake("processing.max-in-memory", "must be at least 16");
    }
    if !(1..=MAX_PARTITIONS).contains(&config.schema_initialization.partitions) {
        let problem = format!("must be from 1 to {MAX_PARTITIONS}");
        return mistake("schema-initialization.partitions", problem);
    }
    positive("metrics.sample-interval", config.metrics.sample_interval)?;
    if let Some(default) = &config.retry.default {
        policy(default).map_err(within(&["retry"]))?;
    }
    for (name, config) in &config.retry.policies {
        if name.trim().is_empty() {
            return mistake("retry.policies", "has a policy without a name");
        }
        policy(config).map_err(within(&["retry", "policies", name]))?;
    }
    Ok(())
}

fn lease(config: &Config) -> Checked {
    let locking = &config.locking;
    positive("locking.extension-seconds", locking.lease)?;
    positive("stuck-threshold", config.stuck_threshold)?;
    if config.stuck_threshold.is_some() && locking.lease.is_some() {
        let problem = "sets the same value as `locking.extension-seconds`; keep one of them";
        return mistake("stuck-threshold", problem);
    }
    positive("locking.refresh-threshold", locking.refresh_threshold)?;
    match locking.refresh_threshold {
        Some(threshold) if threshold >= config.lease() => {
            let (threshold, lease) = (words(threshold), words(config.lease()));
            let problem = format!("is {threshold}, but must be below the lease, {lease}");
            mistake("locking.refresh-threshold", problem)
        }
        _ => Ok(()),
    }
}

fn policy(config: &PolicyConfig) -> Checked {
    let (linear, exponential) = (&config.linear, &config.exponential);
    positive("fixed.delay", config.fixed.delay)?;
    positive("linear.increment", linear.increment)?;
    capped(linear.initial_delay, linear.max_delay).map_err(within(&["linear"]))?;
    let multiplier = exponential.multiplier;
    if !multiplier.is_finite() || multiplier <= 1.0 {
        let problem = format!(
            "is {multiplier:?}, but must be a number greater than 1.0; for a constant delay write `policy: fixed`"
        );
        return mistake("exponential.multiplier", problem);
    }
    capped(exponential.initial_delay, exponential.max_delay).map_err(within(&["exponential"]))?;
    positive("max-elapsed", config.max_elapsed)?;
    match config.jitter {
        Jitter::None => Ok(()),
        _ if config.policy == PolicyKind::Jittered => {
            let problem = "has no effect with `policy: jittered`, which has its own `jitter`; \
                           write the base policy as `policy`, or remove this key";
            mistake("jitter", problem)
        }
        Jitter::Proportional(share) if !(0.0..=1.0).contains(&share) => {
            let problem = format!("is {share}, but a share goes from 0.0 to 1.0");
            mistake("jitter", problem)
        }
        _ => Ok(()),
    }
}

fn capped(initial: Duration, max: Duration) -> Checked {
    positive("initial-delay", initial)?;
    positive("max-delay", max)?;
    if max < initial {
        let (max, initial) = (words(max), words(initial));
        let problem = format!("is {max}, but must not be below `initial-delay`, {initial}");
        return mistake("max-delay", problem);
    }
    Ok(())
}

fn positive(keys: &str, duration: impl Into<Option<Duration>>) -> Checked {
    if duration.into() == Some(Duration::ZERO) {
        return mistake(keys, "must be longer than zero");
    }
    Ok(())
}

/// `keys` has a dot between two keys.
fn mistake(keys: &str, problem: impl Into<String>) -> Checked {
    Err(Mistake {
        path: keys.split('.').map(str::to_owned).collect(),
        problem: problem.into(),
    })
}

/// Adds the keys of the section to a mistake in it.
fn within(section: &[&str]) -> impl FnOnce(Mistake) -> Mistake {
    let section = section.iter().map(|&key| key.to_owned());
    |mut mistake| {
        mistake.path.splice(..0, section);
        mistake
    }
}
