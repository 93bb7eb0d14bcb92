#![allow(unused)]

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
#[outbox_event(name = "order.new")]
struct OrderCreated {
    order_id: i64,
}

fn main() {}
