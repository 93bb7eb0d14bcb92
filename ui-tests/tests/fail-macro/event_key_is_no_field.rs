#![allow(unused)]

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order)]
struct OrderCreated {
    order_id: i64,
    total_cents: i64,
}

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.paid", key = customer)]
struct OrderPaid {
    order_id: i64,
}

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.shipped", key = order_id)]
struct OrderShipped(i64);

fn main() {}
