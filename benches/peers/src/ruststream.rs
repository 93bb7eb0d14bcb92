//! ruststream-sqlx: its inbox, a queue in a table. One transaction claims, handles and deletes a batch.
//! In the ordered mode one worker gets the messages of a partition key one after the other.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use ruststream_sqlx::prelude::*;
use serde::Deserialize;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use crate::case::{Case, Mode, Outcome, Peer};
use crate::tally::Tally;

pub(crate) const PEER: Peer = Peer {
    name: "ruststream-sqlx",
    package: "ruststream-sqlx",
    language: "rust",
    modes: Mode::BOTH,
    run: |case| Box::pin(run(case)),
};

const OPEN: &str = "select count(*) from jobs";
const SCHEMA: &str = "
    create table jobs (
        id bigint generated always as identity primary key,
        account text not null,
        payload bytea not null
    )";

#[derive(Inbox, sqlx::FromRow)]
#[inbox(table = "jobs")]
struct Job {
    #[field(id, generated)]
    id: i64,
    #[field(partition_key)]
    account: String,
    #[field(payload)]
    payload: Vec<u8>,
}

#[derive(Deserialize)]
struct Noop {
    n: usize,
}

type Handled = Arc<Tally>;

#[subscriber(InboxQueue::<Job>::new("noop").poll_interval(Duration::from_millis(10)))]
async fn many(jobs: &[Noop], context: &mut Context<'_, (), Handled>) -> Vec<HandlerOutcome> {
    for job in jobs {
        context.state().handle(job.n);
    }
    jobs.iter().map(|_| HandlerOutcome::ack()).collect()
}

#[subscriber(InboxQueue::<Job>::new("noop").poll_interval(Duration::from_millis(10)))]
async fn one(job: &Noop, context: &mut Context<'_, (), Handled>) -> HandlerOutcome {
    context.state().handle(job.n);
    HandlerOutcome::ack()
}

async fn run(case: Case) -> Result<Outcome> {
    let pool = PgPoolOptions::new()
        .max_connections(40)
        .connect(&case.url)
        .await?;
    sqlx::raw_sql(SCHEMA).execute(&pool).await?;
    store(&pool, &case).await?;

    let tally = case.tally.clone();
    let ordered = case.is_ordered();
    let app = RustStream::new(AppInfo::new("peer", "0.0.0"))
        .on_startup(async move |()| Ok::<_, Infallible>(tally))
        .with_broker(SqlxBroker::new(pool), |broker| {
            if ordered {
                broker.include(one.workers_by_key(nonzero!(16)));
            } else {
                broker.include(many.batch(nonzero!(500)));
            }
        });
    let note = if ordered {
        "row locks, 16 workers by key"
    } else {
        "row locks, batch 500"
    };
    let clock = case.start().await?;
    let running = app.start().await?;
    let outcome = clock.stop(OPEN, note).await;
    running.shutdown().await?;
    outcome
}

async fn store(pool: &PgPool, case: &Case) -> Result<()> {
    for batch in case.batches() {
        let keys: Vec<_> = batch
            .clone()
            .map(|n| format!("key-{}", n % case.keys))
            .collect();
        let payloads: Vec<_> = batch
            .map(|n| format!("{{\"n\":{n}}}").into_bytes())
            .collect();
        sqlx::query(
            "insert into jobs (account, payload) select * from unnest($1::text[], $2::bytea[])",
        )
        .bind(keys)
        .bind(payloads)
        .execute(pool)
        .await?;
    }
    Ok(())
}
