//! What a handler is given beside the event: `cargo run --example state_and_metadata`

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use outbox::{Metadata, Outbox, OutboxEvent, State, outbox_handler, retryable};
use outbox_examples::{say, sqlite, until};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
    total_cents: i64,
}

/// A payment service that remembers which idempotency keys it has seen, as real ones do.
#[derive(Clone, Default)]
struct Bank {
    charged: Arc<Mutex<HashSet<String>>>,
}

impl Bank {
    /// Whether this was the first time.
    fn charge(&self, cents: i64, idempotency_key: String) -> bool {
        let mut charged = self.charged.lock().unwrap_or_else(PoisonError::into_inner);
        let first = charged.insert(idempotency_key);
        say(format!(
            "  the bank: {cents} cents, for the first time: {first}"
        ));
        first
    }
}

/// Arguments after the event are found by their types: the metadata, and whatever was given to
/// the outbox with `.state(..)`. One that was not given is an error at the start.
#[outbox_handler(id = "charge-card", timeout = "30s", concurrency = 8)]
#[retryable(fixed("10ms"), max_retries = 3)]
async fn charge_card(
    event: OrderCreated,
    meta: &Metadata,
    State(bank): State<Bank>,
) -> anyhow::Result<()> {
    say(format!(
        "attempt {} of record {} (event {}, key {})",
        meta.attempt(),
        meta.record_id(),
        meta.event_id(),
        meta.key(),
    ));
    // At least once: the handler may run again. The event's id stays the same, so that the other
    // side can tell.
    bank.charge(event.total_cents, meta.event_id().to_string());
    anyhow::ensure!(meta.is_retry(), "the connection broke after the charge");
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    let bank = Bank::default();
    let outbox = Outbox::builder(db.pool.clone())
        .state(bank.clone())
        .build()
        .await?;
    let dispatcher = outbox.start().await?;

    let mut tx = db.pool.begin().await?;
    for order_id in [1, 2] {
        let total_cents = 1000 * order_id;
        let event = OrderCreated {
            order_id,
            total_cents,
        };
        outbox.publish(&mut tx, &event).await?;
    }
    tx.commit().await?;

    until(&outbox, |now| now.completed == 2).await?;
    dispatcher.shutdown().await?;
    let charged = bank.charged.lock().unwrap_or_else(PoisonError::into_inner);
    anyhow::ensure!(charged.len() == 2, "{charged:?}");
    say("two orders, four invocations, two charges");
    Ok(())
}
