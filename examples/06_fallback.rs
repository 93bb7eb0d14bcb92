//! A fallback that runs after a handler has failed permanently: `cargo run --example fallback`

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

/// The returned error decides about retries.
#[outbox_handler(id = "charge-card", fallback = cancel_order)]
#[retryable(fixed("10ms"), max_retries = 2)]
async fn charge_card(event: OrderCreated, meta: &Metadata) -> Result<(), HandlerError> {
    let (order, attempt) = (event.order_id, meta.attempt());
    say(format!("order {order}, attempt {attempt}: {}", event.card));
    match event.card.as_str() {
        // Retried twice, because the policy allows two retries.
        "declined" => Err("declined".into()),
        // Never retried, whatever the policy is.
        "stolen" => Err(HandlerError::permanent("stolen")),
        // Retried without using up a retry. Here the bank is open at the fifth attempt.
        "bank is closed" if attempt < 5 => Err(HandlerError::unavailable("closed")),
        _ => Ok(()),
    }
}

/// Runs once. If it succeeds, the handler is done with the record. If it fails, the record stays
/// failed until an operator replays or discards it.
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
        let event = OrderCreated {
            order_id,
            card: card.to_owned(),
        };
        outbox.publish(&mut tx, &event).await?;
    }
    tx.commit().await?;

    let counts = until(&outbox, |now| now.completed == 4).await?;
    dispatcher.shutdown().await?;
    let by_fallback = cancelled.0.load(Ordering::Relaxed);
    say(format!("all four are done, {by_fallback} by the fallback"));
    anyhow::ensure!(counts.failed == 0 && by_fallback == 2);
    Ok(())
}
