//! An order and its event, written together or not at all: `cargo run --example publish`

use std::time::Duration;

use outbox::{Outbox, OutboxEvent, Scheduled};
use sqlx::sqlite::SqlitePoolOptions;

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    // In memory, and so on one connection; a file or a server takes as many as you like.
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .connect("sqlite::memory:")
        .await?;
    sqlx::query("create table orders (id integer primary key)")
        .execute(&pool)
        .await?;
    // Creates its tables. This process only publishes, so it has no handlers.
    let outbox = Outbox::builder(pool.clone()).allow_empty().build().await?;

    let mut tx = pool.begin().await?;
    sqlx::query("insert into orders values (1)")
        .execute(&mut *tx)
        .await?;
    outbox
        .publish(&mut tx, &OrderCreated { order_id: 1 })
        .await?;
    tx.commit().await?;

    let mut tx = pool.begin().await?;
    sqlx::query("insert into orders values (2)")
        .execute(&mut *tx)
        .await?;
    outbox
        .publish(&mut tx, &OrderCreated { order_id: 2 })
        .await?;
    tx.rollback().await?; // neither the order nor its event

    let mut tx = pool.begin().await?;
    for _ in 0..2 {
        let reminder = OrderCreated { order_id: 1 };
        let sent = outbox
            .schedule(&reminder)
            .delay(Duration::from_secs(24 * 3600))
            .dedup_key("reminder/1")
            .send(&mut tx)
            .await?;
        match sent {
            Scheduled::Duplicate => println!("the reminder is there already"),
            published => println!("the reminder: {published:?}"),
        }
    }
    tx.commit().await?;

    let stored: Vec<(i64, String, String, String)> =
        sqlx::query_as("select id, key, event, status from outbox_record order by id")
            .fetch_all(&pool)
            .await?;
    for (id, key, event, status) in stored {
        println!("record {id}: {event} of key {key} is {status}");
    }
    Ok(())
}
