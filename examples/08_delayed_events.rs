//! An event with a delay, a deduplication key and a header: `cargo run --example delayed_events`

use std::time::Duration;

use outbox::{Metadata, Outbox, OutboxEvent, Scheduled, outbox_handler};
use outbox_examples::{say, sqlite, until};
use tokio::time::Instant;

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
}

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "payment.reminder")]
struct PaymentReminder {
    order_id: i64,
}

#[outbox_handler(id = "welcome")]
async fn welcome(event: OrderCreated) {
    say(format!("  order {} is here", event.order_id));
}

#[outbox_handler(id = "remind")]
async fn remind(event: PaymentReminder, meta: &Metadata) -> anyhow::Result<()> {
    let header = meta.headers().get("tenant").map(String::as_str);
    let (order, tenant) = (event.order_id, header.unwrap_or("unknown"));
    say(format!("  {tenant}: has order {order} been paid?"));
    anyhow::ensure!(tenant == "acme");
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    let outbox = Outbox::builder(db.pool.clone()).build().await?;
    let dispatcher = outbox.start().await?;

    let delay = Duration::from_millis(300);
    let start = Instant::now();
    let mut tx = db.pool.begin().await?;
    outbox
        .publish(&mut tx, &OrderCreated { order_id: 1 })
        .await?;
    // Sent twice, as by a repeated request, and stored once.
    let mut duplicates = 0;
    for _ in 0..2 {
        let reminder = PaymentReminder { order_id: 1 };
        let sent = outbox
            .schedule(&reminder)
            .key("reminders of acme") // replaces the event's own key; this event has none
            .delay(delay) // on the database's clock; or `.at(timestamp)`
            .dedup_key("reminder/1")
            .header("tenant", "acme")
            .max_retries(1) // wins over the handler's policy
            .send(&mut tx)
            .await?;
        match sent {
            Scheduled::Duplicate => duplicates += 1,
            published => say(format!("the reminder: {published:?}")),
        }
    }
    tx.commit().await?;
    anyhow::ensure!(duplicates == 1);
    say("committed: the order is delivered now, the reminder in 300 ms");

    let counts = until(&outbox, |now| now.completed == 2).await?;
    let took = start.elapsed();
    // The dispatcher delivered it when it was due, not at its next poll.
    let in_time = took >= delay && took < delay + Duration::from_secs(3);
    anyhow::ensure!(counts.scheduled == 0 && in_time, "{took:?}");
    dispatcher.shutdown().await?;
    Ok(())
}
