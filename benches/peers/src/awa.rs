//! awa: claims and completes in batches. A queue hands out its jobs in order. One worker per
//! partition keeps the jobs of a key in order, because they are in one partition.

use std::time::Duration;

use anyhow::Result;
use awa::{Client, InsertOpts, JobArgs, JobResult, PartitionedQueue, QueueConfig};
use serde::{Deserialize, Serialize};
use sqlx_08::PgPool;
use sqlx_08::postgres::PgPoolOptions;

use crate::case::{Case, Mode, Outcome, Peer};

pub(crate) const PEER: Peer = Peer {
    name: "awa",
    package: "awa",
    language: "rust",
    modes: Mode::BOTH,
    run: |case| Box::pin(run(case)),
};

const STOP: Duration = Duration::from_secs(5);
const OPEN: &str = "select count(*) from awa.jobs where state not in ('completed')";

#[derive(Debug, Serialize, Deserialize, JobArgs)]
struct Noop {
    n: usize,
}

async fn run(case: Case) -> Result<Outcome> {
    let pool = PgPoolOptions::new()
        .max_connections(40)
        .connect(&case.url)
        .await?;
    awa::migrations::run(&pool).await?;
    let (partitions, workers) = if case.is_ordered() { (16, 1) } else { (1, 500) };
    let queue = PartitionedQueue::new("noop", partitions)?;
    // The first start selects the faster storage, but only while the tables are empty.
    let first = client(&pool, &case, &queue, workers)?;
    first.start().await?;
    first.shutdown(STOP).await;
    store(&pool, &case, &queue).await?;

    let client = client(&pool, &case, &queue, workers)?;
    let note =
        format!("{partitions} partition(s) of {workers} worker(s), claims and completions of 512");
    let clock = case.start().await?;
    client.start().await?;
    let outcome = clock.stop(OPEN, note).await;
    client.shutdown(STOP).await;
    outcome
}

fn client(pool: &PgPool, case: &Case, queue: &PartitionedQueue, workers: u32) -> Result<Client> {
    let config = QueueConfig {
        max_workers: workers,
        poll_interval: Duration::from_millis(20),
        // As in awa's own benchmarks, jobs have no deadline, which would be a write per job.
        deadline_duration: Duration::ZERO,
        ..QueueConfig::default()
    };
    let tally = case.tally.clone();
    let client = Client::builder(pool.clone())
        .partitioned_queue(queue, config)
        .register::<Noop, _, _>(move |job: Noop, _| {
            let tally = tally.clone();
            async move {
                tally.handle(job.n);
                Ok(JobResult::Completed)
            }
        })
        .build()?;
    Ok(client)
}

async fn store(pool: &PgPool, case: &Case, queue: &PartitionedQueue) -> Result<()> {
    for batch in case.batches() {
        let jobs = batch
            .map(|n| {
                let options = InsertOpts::default();
                let options = if case.is_ordered() {
                    queue.route_opts_by_key(options, format!("key-{}", n % case.keys))
                } else {
                    queue.route_opts_by_index(options, n)
                };
                awa::model::insert::params_with(&Noop { n }, options)
            })
            .collect::<Result<Vec<_>, _>>()?;
        awa::insert_many_copy_from_pool(pool, &jobs).await?;
    }
    Ok(())
}
