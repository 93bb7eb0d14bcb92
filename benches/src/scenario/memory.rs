//! `memory`: the peak memory of a process that drains a large backlog, against that of a process that
//! drains a tenth of it. Memory must not depend on the size of the backlog.

use anyhow::Context as _;

use crate::{
    backlog::{self, KEYS},
    database::Bench,
    site::Site,
    verdict::{Verdict, rounded},
    worker::{Child, Role},
};

const RECORDS: u64 = 5_000_000;
/// Megabytes.
const LIMIT: f64 = 100.0;

pub(crate) async fn run<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let records = site.arguments.records(RECORDS);
    let small = drained(site, (records / 10).max(1)).await?;
    let large = drained(site, records).await?;
    let verdict = |name: &str, pair, goal| {
        Verdict::less_is_better(name, Some(Db::KIND), "MB", pair, goal)
            .with("records", records)
            .with("records_per_second", rounded(large.rate))
    };
    Ok(vec![
        verdict("memory/peak", (large.megabytes, LIMIT), 1.0),
        verdict("memory/flat", (large.megabytes, small.megabytes), 0.9),
    ])
}

struct Peak {
    megabytes: f64,
    rate: f64,
}

/// Drains in a new process.
async fn drained<Db: Bench>(site: &Site<Db>, records: u64) -> anyhow::Result<Peak> {
    backlog::write(site, records, KEYS).await?;
    site.progress.doing(format!("memory: draining {records}"));
    let mut worker = Child::start(Role::Drain, Db::KIND, &site.url, records).await?;
    let line = worker.line().await?;
    let _: Vec<Nothing> = worker.end().await?;
    site.ensure_nothing_left().await?;
    let (kilobytes, millis) = line.split_once(' ').context("the output of a worker")?;
    let (kilobytes, millis): (f64, f64) = (kilobytes.parse()?, millis.parse()?);
    Ok(Peak {
        megabytes: kilobytes / 1024.0,
        rate: records as f64 / millis.max(1.0) * 1e3,
    })
}

/// A worker prints no further line.
struct Nothing;

impl std::str::FromStr for Nothing {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Self> {
        anyhow::bail!("a worker printed another line: {line}")
    }
}
