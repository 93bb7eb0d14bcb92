//! PostgreSQL, with many concurrent writers of one key:
//! `DATABASE_URL=postgres://.. cargo run --example postgres`, or
//! `scripts/with-databases cargo run --example postgres`

use std::sync::{Arc, Mutex, PoisonError};

use outbox::{Outbox, OutboxEvent, State, outbox_handler};
use outbox_examples::{postgres, say, until};
use sqlx::{PgPool, Postgres};
use tokio::task::JoinSet;

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "account.changed", key = account)]
struct AccountChanged {
    account: i64,
    version: i64,
}

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<i64>>>);

#[outbox_handler(id = "mirror")]
async fn mirror(event: AccountChanged, State(seen): State<Seen>) {
    let mut versions = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
    versions.push(event.version);
}

/// The update locks the account's row until the commit. Other transactions that change the same
/// account wait for it, so its events get their ids in the order of their versions. Without such a
/// lock, transactions that run at the same time have no order.
async fn deposit(pool: PgPool, outbox: Outbox<Postgres>, account: i64) -> anyhow::Result<()> {
    let mut tx = pool.begin().await?;
    let update = "update account set version = version + 1 where id = $1 returning version";
    let version: i64 = sqlx::query_scalar(update)
        .bind(account)
        .fetch_one(&mut *tx)
        .await?;
    let changed = AccountChanged { account, version };
    outbox.publish(&mut tx, &changed).await?;
    tx.commit().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let pool = postgres().await?;
    sqlx::query("create table account (id bigint primary key, version bigint not null)")
        .execute(&pool)
        .await?;
    sqlx::query("insert into account values (1, 0)")
        .execute(&pool)
        .await?;
    let seen = Seen::default();
    let outbox = Outbox::builder(pool.clone())
        .state(seen.clone())
        .build()
        .await?;
    let dispatcher = outbox.start().await?;

    let mut writers = JoinSet::new();
    for _ in 0..50 {
        writers.spawn(deposit(pool.clone(), outbox.clone(), 1));
    }
    for written in writers.join_all().await {
        written?;
    }
    say("50 writers have changed the same account");

    until(&outbox, |now| now.completed == 50).await?;
    dispatcher.shutdown().await?;
    let versions = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
    say(format!("seen: {versions:?}"));
    anyhow::ensure!(versions.iter().copied().eq(1..=50));
    Ok(())
}
