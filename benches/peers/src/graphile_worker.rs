//! graphile_worker: the Rust port of Graphile Worker, with its local queue.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, JobSpecBuilder, LocalQueueConfig, RawJobSpec, TaskHandler,
    WorkerContext, WorkerOptions, WorkerUtils,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::postgres::PgPoolOptions;

use crate::case::{Case, Mode, Outcome, Peer};
use crate::tally::Tally;

pub(crate) const PEER: Peer = Peer {
    name: "graphile_worker",
    package: "graphile_worker",
    language: "rust",
    modes: Mode::BOTH,
    run: |case| Box::pin(run(case)),
};

const OPEN: &str = "select count(*) from graphile_worker._private_jobs";

#[derive(Clone)]
struct Handled(Arc<Tally>);

impl std::fmt::Debug for Handled {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Handled")
    }
}

#[derive(Deserialize, Serialize)]
struct Noop {
    n: usize,
}

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        let Some(handled) = context.get_ext::<Handled>() else {
            return Err("no tally".to_owned());
        };
        handled.0.handle(self.n);
        Ok(())
    }
}

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

async fn run(case: Case) -> Result<Outcome> {
    let pool = PgPoolOptions::new().max_connections(env("P_CONN", 20) as u32).connect(&case.url).await?;
    let utils = WorkerUtils::new(pool.clone(), "graphile_worker");
    utils.migrate().await?;
    store(&utils, &case).await?;

    let size = env("P_SIZE", 500) as usize;
    let worker = WorkerOptions::default()
        .pg_pool(pool)
        .concurrency(env("P_CONC", 100) as usize)
        .poll_interval(Duration::from_millis(env("P_POLL", 100)))
        .complete_job_batch_delay(Duration::from_millis(env("P_DELAY", 5)))
        .fail_job_batch_delay(Duration::from_millis(env("P_DELAY", 5)))
        .add_extension(Handled(case.tally.clone()))
        .define_job::<Noop>();
    let worker = if size > 0 { worker.local_queue(LocalQueueConfig::default().with_size(size).with_queue_count(env("P_QUEUES", 1) as usize)) } else { worker };
    let worker = worker.init().await?;
    let clock = case.start().await?;
    let worker = Arc::new(worker);
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run().await }
    });
    let outcome = clock.stop(OPEN, "").await;
    worker.request_shutdown();
    running.await??;
    outcome
}

async fn store(utils: &WorkerUtils, case: &Case) -> Result<()> {
    for batch in case.batches() {
        let jobs: Vec<_> = batch
            .map(|n| RawJobSpec {
                identifier: Noop::IDENTIFIER.to_owned(),
                payload: json!({ "n": n }),
                spec: if case.is_ordered() {
                    let queue = format!("key-{}", n % case.keys);
                    JobSpecBuilder::new().queue_name(queue).build()
                } else {
                    JobSpec::default()
                },
            })
            .collect();
        utils.add_raw_jobs(&jobs).await?;
    }
    Ok(())
}
