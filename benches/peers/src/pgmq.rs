//! pgmq: a queue of SQL functions that its Rust client installs. It has no worker, so this is the loop
//! of its documentation: read a batch, handle it, delete it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use pgmq::PGMQueueExt;
use serde_json::{Value, json};
use sqlx_08::postgres::PgPoolOptions;
use tokio::task::JoinSet;

use crate::case::{Case, Mode, Outcome, Peer};
use crate::tally::Tally;

pub(crate) const PEER: Peer = Peer {
    name: "pgmq",
    package: "pgmq",
    language: "rust",
    modes: Mode::BOTH,
    run: |case| Box::pin(run(case)),
};

const CONSUMERS: u32 = 4;
const BATCH: i32 = 1_000;
const QUEUE: &str = "noop";
const OPEN: &str = "select count(*) from pgmq.q_noop";
/// Seconds until a message that was read and not deleted is read again.
const INVISIBLE: i32 = 60;

async fn run(case: Case) -> Result<Outcome> {
    // pgmq's own parser of URLs requires a password.
    let pool = PgPoolOptions::new()
        .max_connections(CONSUMERS)
        .connect(&case.url)
        .await?;
    let queue = PGMQueueExt::new_with_pool(pool).await;
    queue.install_sql_from_embedded().await?;
    queue.create(QUEUE).await?;
    if case.is_ordered() {
        queue.create_fifo_index(QUEUE).await?;
    }
    store(&queue, &case).await?;

    let clock = case.start().await?;
    let mut workers = JoinSet::new();
    for _ in 0..CONSUMERS {
        workers.spawn(consume(
            queue.clone(),
            case.tally.clone(),
            case.is_ordered(),
        ));
    }
    let note = format!("installed as SQL, {CONSUMERS} consumers, batch {BATCH}");
    clock.stop(OPEN, note).await
}

async fn consume(queue: PGMQueueExt, tally: Arc<Tally>, ordered: bool) -> Result<()> {
    loop {
        let mut messages = if ordered {
            queue.read_grouped::<Value>(QUEUE, INVISIBLE, BATCH).await?
        } else {
            queue.read_batch::<Value>(QUEUE, INVISIBLE, BATCH).await?
        };
        // One read may return several messages of a key, in any order.
        messages.sort_unstable_by_key(|message| message.msg_id);
        for message in &messages {
            tally.handle_value(&message.message);
        }
        let ids: Vec<_> = messages.iter().map(|message| message.msg_id).collect();
        if ids.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        } else {
            queue.delete_batch(QUEUE, &ids).await?;
        }
    }
}

async fn store(queue: &PGMQueueExt, case: &Case) -> Result<()> {
    for batch in case.batches() {
        let messages: Vec<_> = batch.clone().map(|n| json!({ "n": n })).collect();
        let groups: Vec<_> = batch
            .map(|n| json!({ "x-pgmq-group": format!("key-{}", n % case.keys) }))
            .collect();
        let groups = case.is_ordered().then_some(groups.as_slice());
        queue
            .send_batch_with_delay_with_headers(QUEUE, &messages, groups, 0)
            .await?;
    }
    Ok(())
}
