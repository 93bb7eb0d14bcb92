//! apalis with apalis-postgres: fetches and acknowledges in batches. It has no order by key.

use std::sync::Arc;

use anyhow::Result;
use apalis::prelude::*;
use apalis_postgres::{Config, PostgresStorage};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;

use crate::case::{Case, Mode, Outcome, Peer};
use crate::tally::Tally;

pub(crate) const PEER: Peer = Peer {
    name: "apalis-postgres",
    package: "apalis-postgres",
    language: "rust",
    modes: &[Mode::Unordered],
    run: |case| Box::pin(run(case)),
};

const OPEN: &str = "select count(*) from apalis.jobs where status <> 'Done'";

const BATCH: usize = 500;
const WORKERS: usize = 2;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Noop {
    n: usize,
}

async fn noop(job: Noop, tally: Data<Arc<Tally>>) -> Result<(), BoxDynError> {
    tally.handle(job.n);
    Ok(())
}

async fn run(case: Case) -> Result<Outcome> {
    let pool = PgPoolOptions::new()
        .max_connections(20)
        .connect(&case.url)
        .await?;
    PostgresStorage::setup(&pool).await?;
    let config = Config::default()
        .queue("noop")
        .batch_size(BATCH)
        // Claimed tasks are already marked as queued for their worker.
        .lock_tasks(false);
    let mut storage = PostgresStorage::<Noop>::new(&pool).with_config(config);
    for batch in case.batches() {
        let jobs: Vec<_> = batch
            .map(|n| TaskBuilder::new(Noop { n }).build())
            .collect();
        storage
            .push_all(&mut futures_util::stream::iter(jobs))
            .await?;
    }

    let clock = case.start().await?;
    for worker in 0..WORKERS {
        let worker = WorkerBuilder::new(format!("worker-{worker}"))
            .backend(storage.clone())
            .concurrency(BATCH)
            .data(case.tally.clone())
            .build(noop);
        tokio::spawn(worker.run());
    }
    clock
        .stop(
            OPEN,
            format!("{WORKERS} workers, batch and concurrency {BATCH}, no second lock"),
        )
        .await
}
