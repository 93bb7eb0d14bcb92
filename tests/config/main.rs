//! Configuration files, environment variables, and the retry schedules that they define.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "every function here is part of a test"
)]

mod builder;
mod layers;
mod names;
mod reference;
mod running;
mod statements;
mod wrong;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use outbox::{Config, Retry, RetryPolicy, config::ConfigError};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/config")
        .join(name)
}

/// Loads a file without the environment in which the tests run.
fn load(path: &Path) -> Result<Config, ConfigError> {
    Config::loader().file(path).environment([]).load()
}

/// The delay before each retry that the policy allows.
fn schedule(retry: &Retry) -> Vec<Duration> {
    (1..=retry.max_retries())
        .map(|failure_count| retry.next_delay(failure_count))
        .collect()
}

fn secs<const N: usize>(secs: [u64; N]) -> Vec<Duration> {
    secs.map(Duration::from_secs).to_vec()
}

fn millis<const N: usize>(millis: [u64; N]) -> Vec<Duration> {
    millis.map(Duration::from_millis).to_vec()
}
