//! `scale-out`: two and four processes against one. The handler takes 5 ms and runs 32 times at once,
//! which limits each process. So the rate grows with the number of processes until the database is
//! busy.

use std::{collections::HashMap, time::Duration};

use anyhow::{bail, ensure};
use outbox::Registry;

use crate::{
    backlog::KEYS,
    database::Bench,
    event::Happened,
    ours,
    site::Site,
    verdict::{Verdict, rounded},
    worker::{Child, Entry, Role},
};

/// The number of records per process.
const RECORDS: u64 = 15_000;
const ROUNDS: usize = 3;
const PROCESSES: [u64; 3] = [1, 2, 4];

pub(crate) async fn run<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let (records, rounds) = (
        site.arguments.records(RECORDS),
        site.arguments.rounds(ROUNDS),
    );
    let mut best: HashMap<u64, f64> = HashMap::new();
    for round in 1..=rounds {
        for processes in PROCESSES {
            let activity = format!("scale-out: round {round} of {rounds}, {processes} processes");
            site.progress.doing(activity);
            let rate = rate_of(site, processes, processes * records).await?;
            let entry = best.entry(processes).or_default();
            *entry = entry.max(rate);
        }
    }
    let rate = |processes: u64| best.get(&processes).copied().unwrap_or_default();
    let verdict = |processes: u64| {
        let pair = (rate(processes), rate(1) * processes as f64);
        let name = format!("scale-out/{processes}");
        Verdict::more_is_better(name, Some(Db::KIND), "records/s", pair, 0.9)
            .with("one_process", rounded(rate(1)))
            .with("records", processes * records)
    };
    Ok(PROCESSES.into_iter().skip(1).map(verdict).collect())
}

/// The rate from the first to the last start of a handler in all processes.
async fn rate_of<Db: Bench>(site: &Site<Db>, processes: u64, records: u64) -> anyhow::Result<f64> {
    Db::empty(&site.pool).await?;
    let mut workers = Vec::new();
    for _ in 0..processes {
        workers.push(Child::start(Role::Work, Db::KIND, &site.url, 0).await?);
    }
    until_shared(site, processes).await?;
    publish(site, records).await?;
    until_done(site).await?;
    let mut entries: Vec<Entry> = Vec::new();
    for worker in workers {
        entries.append(&mut worker.end().await?);
    }
    entries.sort_unstable_by_key(|entry| entry.at);
    check(&entries, records)?;
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
        bail!("no record was handled");
    };
    let micros = (last.at - first.at).max(1);
    Ok(records as f64 / micros as f64 * 1e6)
}

/// Waits until each process owns its share.
async fn until_shared<Db: Bench>(site: &Site<Db>, processes: u64) -> anyhow::Result<()> {
    let share = 64 / processes;
    let sql = format!(
        "select count(*) from (select owner from outbox_lease where owner is not null group by owner having count(*) = {share}) x"
    );
    until(site, &sql, i64::try_from(processes)?).await
}

async fn until_done<Db: Bench>(site: &Site<Db>) -> anyhow::Result<()> {
    until(site, "select count(*) from outbox_record", 0).await
}

async fn until<Db: Bench>(site: &Site<Db>, sql: &str, wanted: i64) -> anyhow::Result<()> {
    for _ in 0..1_200 {
        if Db::number(&site.pool, sql).await? == wanted {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("waited 120 s for {wanted} as the answer to: {sql}")
}

/// Publishes all events in one transaction, so that no process waits for the publisher.
async fn publish<Db: Bench>(site: &Site<Db>, records: u64) -> anyhow::Result<()> {
    let registry = Registry::builder().allow_empty();
    let (outbox, pool) = site.outbox(registry, ours::config(false), 2).await?;
    let events: Vec<Happened> = (0..records).map(|n| Happened::new(n, n % KEYS)).collect();
    let mut tx = pool.begin().await?;
    for events in events.chunks(1_000) {
        outbox.publish_all(&mut tx, events).await?;
    }
    tx.commit().await?;
    pool.close().await;
    Ok(())
}

/// Checks that each record was handled once, and the records of each key in order, over all processes.
fn check(entries: &[Entry], records: u64) -> anyhow::Result<()> {
    let mut last: HashMap<u64, u64> = HashMap::new();
    for entry in entries {
        let before = last.insert(entry.key, entry.n);
        let wanted = before.map_or(entry.key, |before| before + KEYS);
        ensure!(
            entry.n == wanted,
            "a wrong run: record {} started when {wanted} was expected",
            entry.n
        );
    }
    let count = entries.len() as u64;
    ensure!(
        count == records,
        "a wrong run: {count} of {records} records were handled"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(numbers: &[u64]) -> Vec<Entry> {
        let entry = |(at, n): (i64, &u64)| Entry {
            n: *n,
            key: n % KEYS,
            at,
        };
        (0..).zip(numbers).map(entry).collect()
    }

    #[test]
    fn the_records_of_several_processes_must_be_complete_and_in_order() {
        check(&entries(&[0, 1, KEYS, KEYS + 1]), 4).unwrap();
        assert!(check(&entries(&[0, 1, KEYS]), 4).is_err());
        assert!(check(&entries(&[KEYS, 1, 0, KEYS + 1]), 4).is_err());
        assert!(check(&entries(&[0, 1, 1, KEYS]), 4).is_err());
    }
}
