//! `latency`: the time from the commit of an event to the start of its handler, on an idle system. In
//! the same process and in another one, against a bare notification from one session to another.

use std::time::Duration;

use anyhow::{bail, ensure};
use outbox::Registry;
use sqlx::PgPool;
use tokio::{sync::mpsc, time::timeout};

use crate::{
    database::{Bench, Kind},
    event::Happened,
    ours,
    rounds::percentile,
    site::{CONNECTIONS, Site},
    verdict::Verdict,
    worker::{Child, Entry, Journal, Role, listen::CHANNEL, now, observe},
};

const EVENTS: u64 = 50;
const ROUNDS: usize = 3;
/// The time between two events, after which all processes are idle.
const GAP: Duration = Duration::from_millis(100);
/// A dispatcher without work is idle after this time.
const SETTLING: Duration = Duration::from_secs(2);

pub(crate) async fn run<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let events = if site.arguments.small { 5 } else { EVENTS };
    let (events, rounds) = (
        site.arguments.records.unwrap_or(events),
        site.arguments.rounds(ROUNDS),
    );
    let (mut same, mut other, mut bare) = (Times::none(), Times::none(), Times::none());
    for round in 1..=rounds {
        site.progress
            .doing(format!("latency: round {round} of {rounds}"));
        Db::empty(&site.pool).await?;
        same.better(same_process(site, events).await?);
        other.better(other_process(site, events).await?);
        bare.better(match Db::KIND {
            Kind::Postgres => notification(&site.url, events).await?,
            Kind::Mysql | Kind::Sqlite => round_trip(site, events).await?,
        });
    }
    // Two round trips plus 1 ms; without notifications, plus the longest time between two polls.
    let (poll_ms, compared) = match Db::KIND {
        Kind::Postgres => (1.0, "2 x a bare notification + 1 ms"),
        Kind::Mysql => (50.0, "2 x a query + 50 ms between two polls"),
        Kind::Sqlite => (100.0, "2 x a query + 100 ms between two polls"),
    };
    let bound = 2.0 * bare.p50 + poll_ms;
    let verdict = |name: &str, times: &Times, goal: Option<f64>| {
        let pair = (times.p50.max(0.001), bound);
        Verdict::less_is_better(name, Some(Db::KIND), "ms, p50", pair, goal)
            .with("p99_ms", crate::verdict::rounded(times.p99))
            .with("round_trip_p50_ms", crate::verdict::rounded(bare.p50))
            .with("round_trip_p99_ms", crate::verdict::rounded(bare.p99))
            .with("reference_is", compared)
    };
    Ok(vec![
        verdict("latency/same-process", &same, None),
        verdict("latency/other-process", &other, Some(1.0)),
    ])
}

/// Percentiles, in milliseconds.
#[derive(Clone, Copy)]
struct Times {
    p50: f64,
    p99: f64,
}

impl Times {
    fn none() -> Self {
        Self {
            p50: f64::INFINITY,
            p99: f64::INFINITY,
        }
    }

    fn of(times: &[Duration]) -> Self {
        let percent = |percent| percentile(times, percent).as_secs_f64() * 1e3;
        Self {
            p50: percent(50),
            p99: percent(99),
        }
    }

    /// Keeps the best value of several rounds.
    fn better(&mut self, other: Self) {
        self.p50 = self.p50.min(other.p50);
        self.p99 = self.p99.min(other.p99);
    }
}

async fn same_process<Db: Bench>(site: &Site<Db>, events: u64) -> anyhow::Result<Times> {
    let (journal, mut entries) = Journal::new();
    let registry = Registry::builder().handler::<observe>().state(journal);
    let config = ours::config(false);
    let (outbox, pool) = site.outbox(registry, config, CONNECTIONS).await?;
    let dispatcher = outbox.start().await?;
    tokio::time::sleep(SETTLING).await;
    let mut times = Vec::new();
    for n in 0..events {
        tokio::time::sleep(GAP).await;
        let mut tx = pool.begin().await?;
        outbox.publish(&mut tx, &Happened::new(n, n % 64)).await?;
        tx.commit().await?;
        let committed = now();
        times.push(since(committed, next(&mut entries).await?, n)?);
    }
    dispatcher.shutdown().await?;
    pool.close().await;
    site.ensure_nothing_left().await?;
    Ok(Times::of(&times))
}

async fn other_process<Db: Bench>(site: &Site<Db>, events: u64) -> anyhow::Result<Times> {
    let mut worker = Child::start(Role::Observe, Db::KIND, &site.url, 0).await?;
    let registry = Registry::builder().allow_empty();
    let (outbox, pool) = site.outbox(registry, ours::config(false), 2).await?;
    tokio::time::sleep(SETTLING).await;
    let mut times = Vec::new();
    for n in 0..events {
        tokio::time::sleep(GAP).await;
        let mut tx = pool.begin().await?;
        outbox.publish(&mut tx, &Happened::new(n, n % 64)).await?;
        tx.commit().await?;
        let committed = now();
        times.push(since(committed, worker.line().await?.parse()?, n)?);
    }
    pool.close().await;
    let more: Vec<Entry> = worker.end().await?;
    ensure!(more.is_empty(), "{} events came twice", more.len());
    site.ensure_nothing_left().await?;
    Ok(Times::of(&times))
}

/// From a `NOTIFY` of one session to a listener in another process.
async fn notification(url: &str, events: u64) -> anyhow::Result<Times> {
    let mut listener = Child::start(Role::Listen, Kind::Postgres, url, 0).await?;
    let pool = PgPool::connect(url).await?;
    let mut times = Vec::new();
    for n in 0..events {
        tokio::time::sleep(GAP).await;
        let sent = now();
        sqlx::query("select pg_notify($1, $2)")
            .bind(CHANNEL)
            .bind(n.to_string())
            .execute(&pool)
            .await?;
        times.push(since(sent, listener.line().await?.parse()?, n)?);
    }
    pool.close().await;
    let _: Vec<Entry> = listener.end().await?;
    Ok(Times::of(&times))
}

/// The time of a query that reads no rows.
async fn round_trip<Db: Bench>(site: &Site<Db>, events: u64) -> anyhow::Result<Times> {
    let mut times = Vec::new();
    for _ in 0..events {
        tokio::time::sleep(GAP / 10).await;
        let sent = now();
        Db::number(
            &site.pool,
            "select 1 + count(*) from outbox_instance where 1 = 0",
        )
        .await?;
        times.push(micros(now() - sent));
    }
    Ok(Times::of(&times))
}

async fn next(entries: &mut mpsc::UnboundedReceiver<Entry>) -> anyhow::Result<Entry> {
    match timeout(Duration::from_secs(30), entries.recv()).await {
        Ok(Some(entry)) => Ok(entry),
        _ => bail!("an event was not delivered within 30 s"),
    }
}

fn since(moment: i64, entry: Entry, n: u64) -> anyhow::Result<Duration> {
    ensure!(entry.n == n, "{} was delivered instead of {n}", entry.n);
    Ok(micros(entry.at - moment))
}

/// A negative time counts as 0: the handler started before the publisher got the answer to its commit.
fn micros(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
