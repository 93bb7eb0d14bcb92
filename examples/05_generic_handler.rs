//! A handler for events whose type it does not fix: `cargo run --example generic_handler`

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

/// Everything whose name starts with `order.`, today's and tomorrow's.
#[outbox_handler(id = "order-feed", events = "order.*")]
async fn order_feed(event: AnyEvent, State(seen): State<Seen>) -> Result<(), HandlerError> {
    // As it is stored, to be passed on without knowing what it is.
    say(format!("  feed: {} {}", event.name(), event.payload()));
    // Or as one of the types that are known.
    if event.is::<OrderShipped>() {
        let shipped: OrderShipped = event.parse()?;
        say(format!("  feed: parcel {} is on its way", shipped.parcel));
    }
    seen.0.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Without `events`: every event, except those that its guard says no to.
#[outbox_handler(id = "audit", when = is_no_shipment)]
async fn audit(event: AnyEvent, meta: &Metadata) {
    let (id, key) = (meta.record_id(), meta.key());
    say(format!("  audit: record {id} is {} of {key}", event.name()));
}

/// A record that it says no to is done, as far as this handler goes.
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
    let seen = seen.0.load(Ordering::Relaxed);
    say(format!("three events, {seen} of them in the feed"));
    anyhow::ensure!(seen == 2);
    Ok(())
}
