//! A handler for events of any type: `cargo run --example generic_handler`

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use outbox::{AnyEvent, HandlerError, Metadata, Outbox, OutboxEvent, State, outbox_handler};
use outbox_examples::{say, sqlite, until};

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
}

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "order.shipped", key = order_id)]
struct OrderShipped {
    order_id: i64,
    parcel: String,
}

#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
#[outbox_event(name = "user.registered", key = name)]
struct UserRegistered {
    name: String,
}

#[derive(Clone, Default)]
struct Seen(Arc<AtomicU32>);

/// Takes every event whose name starts with `order.`, including events that are added later.
#[outbox_handler(id = "order-feed", events = "order.*")]
async fn order_feed(event: AnyEvent, State(seen): State<Seen>) -> Result<(), HandlerError> {
    // The payload as it is stored. A handler can pass it on without knowing its type.
    say(format!("  feed: {} {}", event.name(), event.payload()));
    // The payload as one of the types that the program knows.
    if event.is::<OrderShipped>() {
        let shipped: OrderShipped = event.parse()?;
        say(format!("  feed: parcel {} is on its way", shipped.parcel));
    }
    seen.0.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Without `events` it takes every event, except those for which its guard returns `false`.
#[outbox_handler(id = "audit", when = is_no_shipment)]
async fn audit(event: AnyEvent, meta: &Metadata) {
    let (id, key) = (meta.record_id(), meta.key());
    say(format!("  audit: record {id} is {} of {key}", event.name()));
}

/// If it returns `false`, the handler is done with the record and does not run.
fn is_no_shipment(event: &AnyEvent, _meta: &Metadata) -> bool {
    !event.is::<OrderShipped>()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let db = sqlite().await?;
    let seen = Seen::default();
    let outbox = Outbox::builder(db.pool.clone())
        .state(seen.clone())
        .build()
        .await?;
    let dispatcher = outbox.start().await?;

    let mut tx = db.pool.begin().await?;
    let order_id = 1;
    let parcel = "RX-100".to_owned();
    let name = "Ada".to_owned();
    outbox.publish(&mut tx, &OrderCreated { order_id }).await?;
    let shipped = OrderShipped { order_id, parcel };
    outbox.publish(&mut tx, &shipped).await?;
    outbox.publish(&mut tx, &UserRegistered { name }).await?;
    tx.commit().await?;

    until(&outbox, |now| now.completed == 3).await?;
    dispatcher.shutdown().await?;
    let count = seen.0.load(Ordering::Relaxed);
    say(format!("three events, {count} of them in the feed"));
    anyhow::ensure!(count == 2);
    Ok(())
}
