//! The arguments of a handler after the event: `cargo run --example state_and_metadata`

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

/// A payment service that ignores an idempotency key it has seen before, as real ones do.
#[derive(Clone, Default)]
struct Bank {
    charged: Arc<Mutex<HashSet<String>>>,
}

impl Bank {
    /// Returns whether the key is new.
    fn charge(&self, cents: i64, idempotency_key: String) -> bool {
        let mut charged = self.charged.lock().unwrap_or_else(PoisonError::into_inner);
        let first = charged.insert(idempotency_key);
        say(format!(
            "  the bank: {cents} cents, for the first time: {first}"
        ));
        first
    }
}

/// The library finds the arguments after the event by their types: the metadata, and the values given
/// with `.state(..)`. If a value was not given, `build` returns an error.
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
    // Delivery is at least once, so the handler may run again with the same event. The bank recognises
    // it by the event's id, which stays the same.
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
