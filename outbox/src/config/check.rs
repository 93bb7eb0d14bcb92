//! Finds values that `serde` accepts and that cannot work.
//!
//! The checks take the plain data, so a configuration from code is checked like one from a file. For
//! a file, the loader finds the place of a mistake by its path. Back-offs that are not in use are
//! checked too: a delay of zero is a mistake before somebody selects it.

use std::{collections::BTreeMap, time::Duration};

use humantime::format_duration as words;

use super::{Config, ExponentialConfig, LinearConfig, PolicyConfig, PolicyKind, Retention};
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
    positive(config.poll_interval, &["poll-interval"])?;
    lease(config)?;
    if let Retention::For(time) = config.processing.retention {
        positive(time, &["processing", "retention"])?;
    }
    if config.processing.max_in_memory < 16 {
        let problem = "must be at least 16".to_owned();
        return mistake(&["processing", "max-in-memory"], problem);
    }
    positive(
        config.metrics.sample_interval,
        &["metrics", "sample-interval"],
    )?;
    if let Some(default) = &config.retry.default {
        within(&["retry"], policy(default))?;
    }
    named(&config.retry.policies)
}

fn lease(config: &Config) -> Checked {
    let locking = &config.locking;
    if let Some(lease) = locking.lease {
        positive(lease, &["locking", "extension-seconds"])?;
    }
    if let Some(lease) = config.stuck_threshold {
        positive(lease, &["stuck-threshold"])?;
        if locking.lease.is_some() {
            let problem = "sets the same value as `locking.extension-seconds`; keep one of them";
            return mistake(&["stuck-threshold"], problem.to_owned());
        }
    }
    if let Some(threshold) = locking.refresh_threshold {
        let path = ["locking", "refresh-threshold"];
        positive(threshold, &path)?;
        if threshold >= config.lease() {
            let (threshold, lease) = (words(threshold), words(config.lease()));
            let problem = format!("is {threshold}, but must be below the lease, {lease}");
            return mistake(&path, problem);
        }
    }
    Ok(())
}

fn named(policies: &BTreeMap<String, PolicyConfig>) -> Checked {
    for (name, config) in policies {
        if name.trim().is_empty() {
            return mistake(
                &["retry", "policies"],
                "has a policy without a name".to_owned(),
            );
        }
        within(&["retry", "policies", name], policy(config))?;
    }
    Ok(())
}

fn policy(config: &PolicyConfig) -> Checked {
    positive(config.fixed.delay, &["fixed", "delay"])?;
    within(&["linear"], linear(&config.linear))?;
    within(&["exponential"], exponential(&config.exponential))?;
    if config.max_elapsed == Some(Duration::ZERO) {
        return mistake(&["max-elapsed"], TOO_SHORT.to_owned());
    }
    match config.jitter {
        Jitter::None => Ok(()),
        _ if config.policy == PolicyKind::Jittered => {
            let problem = "has no effect with `policy: jittered`, which has its own `jitter`; \
                           write the base policy as `policy`, or remove this key";
            mistake(&["jitter"], problem.to_owned())
        }
        Jitter::Proportional(share) if !(0.0..=1.0).contains(&share) => mistake(
            &["jitter"],
            format!("is {share}, but a share goes from 0.0 to 1.0"),
        ),
        _ => Ok(()),
    }
}

fn linear(linear: &LinearConfig) -> Checked {
    positive(linear.increment, &["increment"])?;
    capped(linear.initial_delay, linear.max_delay)
}

fn exponential(exponential: &ExponentialConfig) -> Checked {
    let multiplier = exponential.multiplier;
    if !multiplier.is_finite() || multiplier <= 1.0 {
        let problem = format!(
            "is {multiplier:?}, but must be a number greater than 1.0; for a constant delay write `policy: fixed`"
        );
        return mistake(&["multiplier"], problem);
    }
    capped(exponential.initial_delay, exponential.max_delay)
}

fn capped(initial: Duration, max: Duration) -> Checked {
    positive(initial, &["initial-delay"])?;
    positive(max, &["max-delay"])?;
    if max < initial {
        let (max, initial) = (words(max), words(initial));
        let problem = format!("is {max}, but must not be below `initial-delay`, {initial}");
        return mistake(&["max-delay"], problem);
    }
    Ok(())
}

const TOO_SHORT: &str = "must be longer than zero";

fn positive(duration: Duration, path: &[&str]) -> Checked {
    if duration.is_zero() {
        return mistake(path, TOO_SHORT.to_owned());
    }
    Ok(())
}

fn mistake(path: &[&str], problem: String) -> Checked {
    let path = path.iter().map(|&key| key.to_owned()).collect();
    Err(Mistake { path, problem })
}

fn within(section: &[&str], checked: Checked) -> Checked {
    checked.map_err(|mistake| Mistake {
        path: section
            .iter()
            .map(|&key| key.to_owned())
            .chain(mistake.path)
            .collect(),
        ..mistake
    })
}
