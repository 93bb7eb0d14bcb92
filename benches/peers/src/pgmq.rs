//! pgmq: a queue of SQL functions, installed by its Rust client. It has no worker, so this is the
//! loop that its documentation shows: read a batch, handle it, delete it.

use std::sync::Arc;

use anyhow::Result;
use pgmq::PGMQueueExt;
use serde_json::{Value, json};
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

const QUEUE: &str = "noop";
const OPEN: &str = "select count(*) from pgmq.q_noop";
/// Seconds until a message that was read and not deleted is read again.
const INVISIBLE: i32 = 60;

async fn run(case: Case) -> Result<Outcome> {
    use crate::settings::env;
    let consumers = env("P_CONC", 4) as u32;
    let batch = env("P_BATCH", 1000) as i32;
    let queue = PGMQueueExt::new(case.url.clone(), consumers).await?;
    queue.install_sql_from_embedded().await?;
    queue.create(QUEUE).await?;
    if case.is_ordered() {
        queue.create_fifo_index(QUEUE).await?;
    }
    store(&queue, &case).await?;

    let clock = case.start().await?;
    let mut workers = JoinSet::new();
    for _ in 0..consumers {
        workers.spawn(consume(queue.clone(), case.tally.clone(), case.is_ordered(), batch));
    }
    clock.stop(OPEN, "").await
}

async fn consume(queue: PGMQueueExt, tally: Arc<Tally>, ordered: bool, batch: i32) -> Result<()> {
    loop {
        let mut messages = if ordered {
            match crate::settings::env("P_KIND", 0) { 0 => 
            queue.read_grouped::<Value>(QUEUE, INVISIBLE, batch).await?,
            1 => queue.read_grouped_head::<Value>(QUEUE, INVISIBLE, batch).await?,
            _ => queue.read_grouped_rr::<Value>(QUEUE, INVISIBLE, batch).await?,
            }
        } else {
            queue.read_batch::<Value>(QUEUE, INVISIBLE, batch).await?
        };
        // Several of one key may come at once, and in any order.
        messages.sort_unstable_by_key(|message| message.msg_id);
        for message in &messages {
            tally.handle_value(&message.message);
        }
        let ids: Vec<_> = messages.iter().map(|message| message.msg_id).collect();
        if ids.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        } else {
            queue.delete_batch(QUEUE, &ids).await?;
        }
    }
}

async fn store(queue: &PGMQueueExt, case: &Case) -> Result<()> {
    for batch in case.batches() {
        let messages: Vec<_> = batch.clone().map(|n| json!({ "n": n })).collect();
        let groups: Vec<_> =
            batch.map(|n| json!({ "x-pgmq-group": format!("key-{}", n % case.keys) })).collect();
        let groups = case.is_ordered().then_some(groups.as_slice());
        queue.send_batch_with_delay_with_headers(QUEUE, &messages, groups, 0).await?;
    }
    Ok(())
}
