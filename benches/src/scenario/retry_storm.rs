//! `retry-storm`: every record fails twice before it succeeds. It has three invocations and two
//! written failures, so it may take 3.5 times as long as a plain drain.

use outbox::Registry;

use crate::{
    backlog::{self, KEYS},
    database::Bench,
    event, ours,
    rounds::{alternate, best},
    site::Site,
    tally::Tally,
    verdict::Verdict,
};

const RECORDS: u64 = 50_000;
const ROUNDS: usize = 3;
/// The allowed time, as a multiple of the time of a plain drain.
const ALLOWED: f64 = 3.5;

pub(crate) async fn run<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let records = site.arguments.records(RECORDS);
    let storm = async || {
        backlog::write(site, records, KEYS).await?;
        let tally = Tally::new(records, KEYS);
        let registry = Registry::builder()
            .handler::<event::count_third>()
            .state(tally.clone());
        ours::drain_with(site, registry, &tally, records, false).await
    };
    let plain = async || {
        backlog::write(site, records, KEYS).await?;
        ours::drain(site, records, KEYS, false).await
    };
    let rounds = site.arguments.rounds(ROUNDS);
    let (storms, plains) = alternate(&site.progress, "retry-storm", rounds, storm, plain).await?;
    let (storm, plain) = (best(&storms)?, best(&plains)?);
    let pair = (storm.time.as_secs_f64(), ALLOWED * plain.time.as_secs_f64());
    let verdict = Verdict::less_is_better("retry-storm", Some(Db::KIND), "s", pair, 1.0)
        .with("records", records)
        .with("reference_is", "3.5 times as long as `drain` took")
        .used("", storm.usage)
        .used("reference_", plain.usage);
    Ok(vec![verdict])
}
