//! `retry-storm`: every record fails twice before it succeeds. Three invocations and two changes of
//! mind, so that 3.5 times the time of a plain drain is allowed.
//!
//! Once with the defaults, by which retries that are due within a moment are made from memory, and
//! once with every failure written before the next try, as those of longer delays are.

use std::time::Duration;

use outbox::{Config, Registry};

use crate::{
    backlog::{self, KEYS},
    database::Bench,
    event, ours,
    rounds::{Measured, alternate, best},
    site::Site,
    tally::Tally,
    verdict::Verdict,
};

const RECORDS: u64 = 50_000;
const ROUNDS: usize = 3;
/// As many times the work of a drain as it may cost.
const ALLOWED: f64 = 3.5;

pub(crate) async fn run<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let records = site.arguments.records(RECORDS);
    let storm_of = async |config: Config| {
        backlog::write(site, records, KEYS).await?;
        let tally = Tally::new(records, KEYS);
        let registry = Registry::builder()
            .handler::<event::count_third>()
            .state(tally.clone());
        ours::drain_with(site, registry, &tally, records, config).await
    };
    let storm = async || storm_of(ours::config(false)).await;
    let plain = async || {
        backlog::write(site, records, KEYS).await?;
        ours::drain(site, records, KEYS, false).await
    };
    let rounds = site.arguments.rounds(ROUNDS);
    let (storm, plain) = alternate(&site.progress, "retry-storm", rounds, storm, plain).await?;
    let mut written = ours::config(false);
    written.processing.retry_in_memory = Duration::ZERO;
    let written = storm_of(written).await?;
    let (storm, plain) = (best(&storm)?, best(&plain)?);
    let verdict = |name, storm: Measured, goal| {
        let pair = (storm.time.as_secs_f64(), ALLOWED * plain.time.as_secs_f64());
        Verdict::less_is_better(name, Some(Db::KIND), "s", pair, goal)
            .with("records", records)
            .with("reference_is", "3.5 times as long as `drain` took")
            .used("", storm.usage)
            .used("reference_", plain.usage)
    };
    Ok(vec![
        verdict("retry-storm", storm, 1.0),
        verdict("retry-storm/written", written, 1.0),
    ])
}
