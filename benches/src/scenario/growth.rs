//! `growth`: the rate depends neither on the size of the backlog nor on records that cannot run.

use anyhow::ensure;
use outbox::Registry;

use crate::{
    backlog::{self, KEYS},
    database::Bench,
    ours,
    rounds::{alternate, best},
    site::Site,
    tally::Tally,
    verdict::Verdict,
};

const RECORDS: u64 = 100_000;
const ROUNDS: usize = 3;
/// The size of the large backlog, as a multiple of the small one.
const TIMES: u64 = 50;

pub(crate) async fn run<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    Ok(vec![
        backlog_of_millions(site).await?,
        undeliverable(site).await?,
    ])
}

/// The first records of a large backlog against those of a small one. The large one is written once,
/// and each round drains its next records.
async fn backlog_of_millions<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Verdict> {
    let (records, rounds) = (
        site.arguments.records(RECORDS),
        site.arguments.rounds(ROUNDS),
    );
    let waiting = records * TIMES.max(2 * rounds as u64);
    let large = Site::<Db>::create(&site.arguments, "outbox_bench_large").await?;
    large.progress.doing("growth: writing the large backlog");
    backlog::write(&large, waiting, KEYS).await?;
    let large_tally = Tally::new(waiting, KEYS);
    let ours = async || {
        let measured = ours::first(&large, &large_tally, records).await?;
        large_tally.check_beginning()?;
        let left = Db::number(&large.pool, "select count(*) from outbox_record").await?;
        let deleted = waiting - u64::try_from(left)?;
        let handled = large_tally.count();
        ensure!(
            deleted == handled,
            "{handled} records were handled, {deleted} are deleted"
        );
        Ok(measured)
    };
    let small = async || {
        backlog::write(site, records, KEYS).await?;
        let tally = Tally::new(records, KEYS);
        let measured = ours::first(site, &tally, records).await?;
        tally.check()?;
        site.ensure_nothing_left().await?;
        Ok(measured)
    };
    let (ours, small) = alternate(&site.progress, "growth", rounds, ours, small).await?;
    large.remove().await;
    let pair = (best(&ours)?, best(&small)?);
    let verdict = Verdict::rates("growth/backlog", Db::KIND, pair, 0.9);
    Ok(verdict.with("waiting", waiting))
}

/// A backlog with ten times as many delayed records and as many blocked ones, against a backlog alone.
async fn undeliverable<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Verdict> {
    let records = site.arguments.records(RECORDS);
    let (delayed, blocked) = (10 * records, records);
    let crowded = Site::<Db>::create(&site.arguments, "outbox_bench_crowded").await?;
    crowded
        .progress
        .doing("growth: writing delayed and blocked records");
    backlog::add_undeliverable(&crowded, delayed, blocked).await?;
    ensure_blocked(&crowded).await?;
    let ours = async || {
        backlog::add(&crowded, records, KEYS).await?;
        ours::drain(&crowded, records, KEYS, false).await
    };
    let alone = async || {
        backlog::write(site, records, KEYS).await?;
        ours::drain(site, records, KEYS, false).await
    };
    let rounds = site.arguments.rounds(ROUNDS);
    let (ours, alone) = alternate(&site.progress, "growth", rounds, ours, alone).await?;
    let left = Db::number(&crowded.pool, "select count(*) from outbox_record").await?;
    ensure!(
        u64::try_from(left)? == delayed + blocked,
        "{left} of the delayed and blocked records are left"
    );
    crowded.remove().await;
    let pair = (best(&ours)?, best(&alone)?);
    let verdict = Verdict::rates("growth/beside", Db::KIND, pair, 0.9);
    Ok(verdict.with("delayed", delayed).with("blocked", blocked))
}

/// Checks that the library sees the records, which SQL wrote, as blocked.
async fn ensure_blocked<Db: Bench>(site: &Site<Db>) -> anyhow::Result<()> {
    let registry = Registry::builder().allow_empty();
    let (outbox, pool) = site.outbox(registry, ours::config(false), 2).await?;
    let blocked = outbox.operations().blocked_lanes(10).await?;
    ensure!(
        blocked.len() == 10 && blocked.iter().all(|lane| lane.waiting > 0),
        "{} lanes are blocked",
        blocked.len()
    );
    pool.close().await;
    Ok(())
}
