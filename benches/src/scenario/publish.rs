//! `publish` and `publish-bulk`: the library against an insert that a user could write by hand.

use std::{sync::Arc, time::Instant};

use outbox::{Outbox, Registry};
use sqlx::Pool;
use tokio::task::JoinSet;

use crate::{
    backlog::KEYS,
    by_hand::Partitions,
    database::{Bench, Kind},
    event::Happened,
    ours,
    rounds::{Measured, alternate, best},
    site::Site,
    tally::Tally,
    usage::Meter,
    verdict::Verdict,
};

const TRANSACTIONS: u64 = 20_000;
const BULK: u64 = 200_000;
const ROUNDS: usize = 5;
/// The number of events that one statement publishes.
const AT_ONCE: u64 = 1_000;

/// The number of concurrent transactions. SQLite has one writer at a time.
fn tasks(kind: Kind) -> u64 {
    match kind {
        Kind::Postgres | Kind::Mysql => 64,
        Kind::Sqlite => 4,
    }
}

/// The code that writes the record.
enum Publisher<Db: Bench> {
    Library(Outbox<Db>),
    Hand(Outbox<Db>, Arc<Partitions>),
}

impl<Db: Bench> Publisher<Db> {
    /// A business row and an event, in one transaction.
    async fn transaction(&self, pool: &Pool<Db>, n: u64, key: u64) -> anyhow::Result<()> {
        let event = Happened::new(n, key);
        let mut tx = pool.begin().await?;
        Db::insert_business(&mut tx, i64::try_from(n)?).await?;
        match self {
            Self::Library(outbox) => {
                outbox.publish(&mut tx, &event).await?;
                tx.commit().await?;
            }
            Self::Hand(outbox, partitions) => {
                Db::insert_one(&mut tx, &partitions.row(&event)?).await?;
                tx.commit().await?;
                // The dispatcher gets the same signal as from the library.
                outbox.wake();
            }
        }
        Ok(())
    }
}

/// Concurrent transactions, while a dispatcher handles the published events.
pub(crate) async fn concurrently<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let records = site.arguments.records(TRANSACTIONS);
    let partitions = Arc::new(Partitions::read(site).await?);
    let ours = async || transactions(site, records, None).await;
    let by_hand = async || transactions(site, records, Some(Arc::clone(&partitions))).await;
    let rounds = site.arguments.rounds(ROUNDS);
    let (ours, by_hand) = alternate(&site.progress, "publish", rounds, ours, by_hand).await?;
    let pair = (best(&ours)?, best(&by_hand)?);
    let verdict = Verdict::rates("publish", Db::KIND, pair, 0.95);
    Ok(vec![verdict.with("tasks", tasks(Db::KIND))])
}

/// Measures from the first transaction to the last commit.
async fn transactions<Db: Bench>(
    site: &Site<Db>,
    records: u64,
    by_hand: Option<Arc<Partitions>>,
) -> anyhow::Result<Measured> {
    Db::empty(&site.pool).await?;
    let business = "drop table if exists business;
create table business (id bigint primary key, note varchar(100) not null)";
    Db::execute(&site.pool, business).await?;
    Db::settle_down(&site.pool).await?;
    let tasks = tasks(Db::KIND);
    let tally = Tally::new(records, tasks);
    let connections = u32::try_from(tasks)? + crate::site::CONNECTIONS;
    let meter = Meter::start(site).await?;
    let (outbox, pool) = site
        .outbox(ours::counting(&tally), ours::config(false), connections)
        .await?;
    let dispatcher = outbox.start().await?;
    // The connections are opened first, because only publishing is measured.
    let mut open = Vec::new();
    for _ in 0..tasks {
        open.push(pool.acquire().await?);
    }
    drop(open);
    let publisher = Arc::new(match by_hand {
        None => Publisher::Library(outbox),
        Some(partitions) => Publisher::Hand(outbox, partitions),
    });
    let start = Instant::now();
    let mut running = JoinSet::new();
    for key in 0..tasks {
        let (publisher, pool) = (Arc::clone(&publisher), pool.clone());
        running.spawn(async move {
            // Each key has one writer, so that its events have an order.
            for n in (key..records).step_by(usize::try_from(tasks)?) {
                publisher.transaction(&pool, n, key).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    let time = start.elapsed();
    tally.all(&site.progress).await?;
    dispatcher.shutdown().await?;
    pool.close().await;
    let usage = meter.stop(site, records).await?;
    tally.check()?;
    site.ensure_nothing_left().await?;
    Ok(Measured {
        records,
        time,
        usage,
    })
}

/// Many events in one statement; no dispatcher runs.
pub(crate) async fn in_bulk<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let records = site.arguments.records(BULK);
    let partitions = Arc::new(Partitions::read(site).await?);
    let ours = async || bulk(site, records, None).await;
    let by_hand = async || bulk(site, records, Some(Arc::clone(&partitions))).await;
    let rounds = site.arguments.rounds(ROUNDS);
    let (ours, by_hand) = alternate(&site.progress, "publish-bulk", rounds, ours, by_hand).await?;
    let pair = (best(&ours)?, best(&by_hand)?);
    let verdict = Verdict::rates("publish-bulk", Db::KIND, pair, 0.9);
    Ok(vec![verdict.with("at_once", AT_ONCE)])
}

async fn bulk<Db: Bench>(
    site: &Site<Db>,
    records: u64,
    by_hand: Option<Arc<Partitions>>,
) -> anyhow::Result<Measured> {
    Db::empty(&site.pool).await?;
    Db::settle_down(&site.pool).await?;
    let meter = Meter::start(site).await?;
    let registry = Registry::builder().allow_empty();
    let (outbox, pool) = site.outbox(registry, ours::config(false), 4).await?;
    let start = Instant::now();
    for from in (0..records).step_by(usize::try_from(AT_ONCE)?) {
        let numbers = from..records.min(from + AT_ONCE);
        let events: Vec<Happened> = numbers.map(|n| Happened::new(n, n % KEYS)).collect();
        let mut tx = pool.begin().await?;
        match &by_hand {
            None => outbox.publish_all(&mut tx, &events).await?,
            Some(partitions) => {
                let rows = (events.iter().map(|event| partitions.row(event)))
                    .collect::<anyhow::Result<Vec<_>>>()?;
                Db::insert_many(&mut tx, &rows).await?;
            }
        }
        tx.commit().await?;
    }
    let time = start.elapsed();
    pool.close().await;
    let usage = meter.stop(site, records).await?;
    // The drain checks that all records exist and are in order.
    ours::drain(site, records, KEYS, false).await?;
    Ok(Measured {
        records,
        time,
        usage,
    })
}
