//! `memory`: what a backlog costs while it drains. The peak with a large backlog, against the peak
//! with a tenth of it: memory is a matter of what is in flight, not of what waits.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use outbox::{Config, Database, Outbox, OutboxEvent, Registry, Retention, State, outbox_handler};
use serde::{Deserialize, Serialize};
use sqlx::{
    MySqlPool, PgPool, Pool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous},
};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "drained", key = key)]
struct Drained {
    key: usize,
    text: String,
}

#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

#[outbox_handler(id = "drain")]
async fn drain(_: Drained, State(count): State<Count>) {
    count.0.fetch_add(1, Ordering::Relaxed);
}

/// `[sqlite|postgres|mysql] [records]`; the servers are those of `scripts/with-databases`.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let database = arguments.first().map_or("sqlite", String::as_str);
    let records = match arguments.get(1) {
        Some(records) => records.parse().context("the number of records")?,
        None => 1_000_000,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let url = |name| {
            std::env::var(name)
                .with_context(|| format!("{name}: run under `scripts/with-databases`"))
        };
        match database {
            "sqlite" => {
                let folder =
                    std::env::temp_dir().join(format!("outbox-bench-{}", std::process::id()));
                fs::create_dir_all(&folder)?;
                let options = SqliteConnectOptions::new()
                    .filename(folder.join("outbox.sqlite"))
                    .create_if_missing(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Normal);
                let result =
                    compare(database, &SqlitePool::connect_with(options).await?, records).await;
                fs::remove_dir_all(&folder)?;
                result
            }
            "postgres" => {
                compare(
                    database,
                    &PgPool::connect(&url("OUTBOX_TEST_POSTGRES_URL")?).await?,
                    records,
                )
                .await
            }
            "mysql" => {
                compare(
                    database,
                    &MySqlPool::connect(&url("OUTBOX_TEST_MYSQL_URL")?).await?,
                    records,
                )
                .await
            }
            other => bail!("no database `{other}`: sqlite, postgres or mysql"),
        }
    })
}

async fn compare<Db: Database>(
    database: &str,
    pool: &Pool<Db>,
    records: usize,
) -> anyhow::Result<()> {
    // The small one first: what a process once had, it does not always give back.
    let small = peak(pool, records / 10).await?;
    let large = peak(pool, records).await?;
    println!(
        "{database}: peak of {} records {:.1} MB ({:.0}/s), of {records} {:.1} MB ({:.0}/s): {:.2} times",
        records / 10,
        small.megabytes,
        small.rate,
        large.megabytes,
        large.rate,
        large.megabytes / small.megabytes
    );
    Ok(())
}

struct Peak {
    megabytes: f64,
    rate: f64,
}

async fn peak<Db: Database>(pool: &Pool<Db>, records: usize) -> anyhow::Result<Peak> {
    let count = Count::default();
    let mut config = Config::default();
    config.processing.retention = Retention::Delete;
    let registry = Registry::builder().handler::<drain>().state(count.clone());
    let outbox = Outbox::builder(pool.clone())
        .registry(registry)
        .config(config)
        .build()
        .await?;
    let mut written = 0;
    while written < records {
        let chunk: Vec<Drained> = (written..records.min(written + 1_000))
            .map(|n| Drained {
                key: n % 10_000,
                text: "x".repeat(70),
            })
            .collect();
        let mut tx = pool.begin().await?;
        outbox.publish_all(&mut tx, &chunk).await?;
        tx.commit().await?;
        written += chunk.len();
    }
    let start = Instant::now();
    let dispatcher = outbox.start().await?;
    let mut megabytes: f64 = 0.0;
    while count.0.load(Ordering::Relaxed) < records {
        tokio::time::sleep(Duration::from_millis(20)).await;
        megabytes = megabytes.max(resident()?);
    }
    let rate = records as f64 / start.elapsed().as_secs_f64();
    dispatcher.shutdown().await?;
    Ok(Peak { megabytes, rate })
}

/// Megabytes of this process that are in memory.
fn resident() -> anyhow::Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    let kilobytes: f64 = kilobytes.context("VmRSS")?.parse()?;
    Ok(kilobytes / 1024.0)
}
