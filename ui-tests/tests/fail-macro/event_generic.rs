#![allow(unused)]

use outbox::{OutboxEvent, outbox_handler};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated<T> {
    order_id: i64,
    details: T,
}

#[outbox_handler]
async fn charge_card(event: OrderCreated<String>) {}

fn main() {}
