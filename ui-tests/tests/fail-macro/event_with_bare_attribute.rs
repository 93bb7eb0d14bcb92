#![allow(unused)]

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event]
struct OrderCreated {
    order_id: i64,
}

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event = "order.paid"]
struct OrderPaid {
    order_id: i64,
}

fn main() {}
