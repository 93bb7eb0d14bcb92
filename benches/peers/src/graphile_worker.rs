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

async fn run(case: Case) -> Result<Outcome> {
    let pool = PgPoolOptions::new()
        .max_connections(20)
        .connect(&case.url)
        .await?;
    let utils = WorkerUtils::new(pool.clone(), "graphile_worker");
    utils.migrate().await?;
    store(&utils, &case).await?;

    let (queues, concurrency) = if case.is_ordered() { (1, 100) } else { (4, 24) };
    let worker = WorkerOptions::default()
        .pg_pool(pool)
        .concurrency(concurrency)
        .poll_interval(Duration::from_millis(100))
        .complete_job_batch_delay(Duration::from_millis(5))
        .fail_job_batch_delay(Duration::from_millis(5))
        .local_queue(
            LocalQueueConfig::default()
                .with_size(500)
                .with_queue_count(queues),
        )
        .add_extension(Handled(case.tally.clone()))
        .define_job::<Noop>()
        .init()
        .await?;
    let worker = Arc::new(worker);
    let clock = case.start().await?;
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run().await }
    });
    let note = format!(
        "{queues} local queue(s) of 500, concurrency {concurrency}, completions after 5 ms"
    );
    let outcome = clock.stop(OPEN, note).await;
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
