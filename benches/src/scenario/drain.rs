//! `drain`, `drain-keep` and `drain-hot-key`: a backlog through a handler that only counts.

use crate::{
    backlog::{self, KEYS},
    database::{Bench, Kind},
    floor, ours,
    rounds::{alternate, best},
    site::Site,
    verdict::Verdict,
};

/// The default number of records.
pub(crate) const RECORDS: u64 = 200_000;
pub(crate) const ROUNDS: usize = 5;

/// Both sides delete completed records.
pub(crate) async fn deleting<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let goal = match Db::KIND {
        Kind::Postgres => 1.0,
        Kind::Mysql => 0.8,
        Kind::Sqlite => 0.6,
    };
    against_floor(site, "drain", false, goal).await
}

/// Both sides keep records as completed.
pub(crate) async fn keeping<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let goal = match Db::KIND {
        Kind::Postgres => 0.95,
        Kind::Mysql => 0.8,
        Kind::Sqlite => 0.6,
    };
    against_floor(site, "drain-keep", true, goal).await
}

async fn against_floor<Db: Bench>(
    site: &Site<Db>,
    scenario: &str,
    keep: bool,
    goal: f64,
) -> anyhow::Result<Vec<Verdict>> {
    let records = site.arguments.records(RECORDS);
    let ours = async || {
        backlog::write(site, records, KEYS).await?;
        ours::drain(site, records, KEYS, keep).await
    };
    let floor = async || {
        backlog::write(site, records, KEYS).await?;
        floor::drain(site, records, keep).await
    };
    let rounds = site.arguments.rounds(ROUNDS);
    let (ours, floor) = alternate(&site.progress, scenario, rounds, ours, floor).await?;
    let pair = (best(&ours)?, best(&floor)?);
    Ok(vec![Verdict::rates(scenario, Db::KIND, pair, goal)])
}

/// All records have one key, so that they run one after the other. The reference is `drain`.
pub(crate) async fn hot_key<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let records = site.arguments.records(RECORDS);
    let with_keys = async |keys| {
        backlog::write(site, records, keys).await?;
        ours::drain(site, records, keys, false).await
    };
    let rounds = site.arguments.rounds(ROUNDS);
    let (hot, many) = (async || with_keys(1).await, async || with_keys(KEYS).await);
    let (hot, many) = alternate(&site.progress, "drain-hot-key", rounds, hot, many).await?;
    let pair = (best(&hot)?, best(&many)?);
    Ok(vec![Verdict::rates("drain-hot-key", Db::KIND, pair, 0.4)])
}
