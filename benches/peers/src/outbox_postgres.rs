//! outbox-postgres, the storage of "oxide outbox": claims a batch, publishes its events one by one, and
//! marks it as sent. It has no keys and promises no order.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use outbox_core::prelude::*;
use outbox_postgres::{PostgresOutbox, PostgresWriter};
use serde_json::{Value, json};
use sqlx_08::postgres::PgPoolOptions;
use tokio::sync::watch;

use crate::case::{Case, Mode, Outcome, Peer};
use crate::tally::Tally;

pub(crate) const PEER: Peer = Peer {
    name: "outbox-postgres",
    package: "outbox-postgres",
    language: "rust",
    modes: &[Mode::Unordered],
    run: |case| Box::pin(run(case)),
};

const OPEN: &str = "select count(*) from outbox_events where status <> 'Sent'";
const BATCH: u32 = 5_000;
const MANAGERS: usize = 2;
/// The table and trigger from the README of the crate.
const SCHEMA: &str = "
    create type status as enum ('Pending', 'Processing', 'Sent');
    create table outbox_events (
        id uuid primary key default gen_random_uuid(),
        idempotency_token text default null,
        event_type text not null,
        payload jsonb not null,
        status status not null default 'Pending',
        created_at timestamptz not null default now(),
        locked_until timestamptz not null default '-infinity'
    );
    create index idx_outbox_processing_queue on outbox_events (locked_until asc, status)
        where status in ('Pending', 'Processing');
    create unique index idx_outbox_idempotency on outbox_events (idempotency_token);
    create function notify_outbox_event() returns trigger as $$
    begin perform pg_notify('outbox_event', 'ping'); return new; end;
    $$ language plpgsql;
    create trigger outbox_events_notify_trigger after insert or update on outbox_events
        for each row execute function notify_outbox_event();";

struct Noop(Arc<Tally>);

#[async_trait]
impl Transport<Value> for Noop {
    async fn publish(&self, event: Event<Value>) -> Result<(), OutboxError> {
        self.0.handle_value(event.payload.as_value());
        Ok(())
    }
}

async fn run(case: Case) -> Result<Outcome> {
    let pool = PgPoolOptions::new()
        .max_connections(10)
        .connect(&case.url)
        .await?;
    sqlx_08::raw_sql(SCHEMA).execute(&pool).await?;
    let mut config = OutboxConfig::default();
    config.batch_size = BATCH;
    config.poll_interval_secs = 1;
    let config = Arc::new(config);

    let service = OutboxService::new(Arc::new(PostgresWriter), config.clone());
    for batch in case.batches() {
        let mut transaction = pool.begin().await?;
        for n in batch {
            service
                .add_event("noop", json!({ "n": n }), None, &mut *transaction)
                .await?;
        }
        transaction.commit().await?;
    }

    let (stop, stopped) = watch::channel(false);
    let clock = case.start().await?;
    let mut running = Vec::new();
    for _ in 0..MANAGERS {
        let manager = OutboxManagerBuilder::new()
            .storage(Arc::new(PostgresOutbox::new(pool.clone(), config.clone())))
            .publisher(Arc::new(Noop(case.tally.clone())))
            .config(config.clone())
            .shutdown_rx(stopped.clone())
            .build()?;
        running.push(tokio::spawn(manager.run()));
    }
    let outcome = clock
        .stop(OPEN, format!("batch {BATCH}, {MANAGERS} managers"))
        .await;
    stop.send(true)?;
    for worker in running {
        worker.await??;
    }
    outcome
}
