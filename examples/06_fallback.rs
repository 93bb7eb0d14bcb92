//! What happens when a handler has failed for good: `cargo run --example fallback`

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use outbox::{HandlerError, Metadata, Outbox, OutboxEvent, State, outbox_handler, retryable};
use outbox_examples::{say, sqlite, until};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
    card: String,
}

#[derive(Clone, Default)]
struct Cancelled(Arc<AtomicU32>);

/// What it returns says what is to happen.
#[outbox_handler(id = "charge-card", fallback = cancel_order)]
#[retryable(fixed("10ms"), max_retries = 2)]
async fn charge_card(event: OrderCreated, meta: &Metadata) -> Result<(), HandlerError> {
    let (order, attempt) = (event.order_id, meta.attempt());
    say(format!("order {order}, attempt {attempt}: {}", event.card));
    match event.card.as_str() {
        // Retried twice, by the policy.
        "declined" => Err("declined".into()),
        // Never retried, whatever the policy says.
        "stolen" => Err(HandlerError::permanent("stolen")),
        // Retried without using up a retry: here it is back at the fifth attempt.
        "bank is closed" if attempt < 5 => Err(HandlerError::unavailable("closed")),
        _ => Ok(()),
    }
}

/// Runs once. If it succeeds, the record is done; if it fails, the record stays as a dead letter.
async fn cancel_order(
    event: OrderCreated,
    error: &HandlerError,
    State(cancelled): State<Cancelled>,
) -> Result<(), String> {
    say(format!("  order {} is cancelled: {error}", event.order_id));
    cancelled.0.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    let cancelled = Cancelled::default();
    let outbox = Outbox::builder(db.pool.clone())
        .state(cancelled.clone())
        .build()
        .await?;
    let dispatcher = outbox.start().await?;

    let mut tx = db.pool.begin().await?;
    let cards = ["good", "declined", "stolen", "bank is closed"];
    for (order_id, card) in (1..).zip(cards) {
        let card = card.to_owned();
        let event = OrderCreated { order_id, card };
        outbox.publish(&mut tx, &event).await?;
    }
    tx.commit().await?;

    let counts = until(&outbox, |now| now.completed == 4).await?;
    dispatcher.shutdown().await?;
    let cancelled = cancelled.0.load(Ordering::Relaxed);
    say(format!("all four are done, {cancelled} by the fallback"));
    anyhow::ensure!(counts.failed == 0 && cancelled == 2);
    Ok(())
}
