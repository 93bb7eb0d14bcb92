#![allow(unused)]

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
struct OrderCreated {
    order_id: i64,
}

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(key = order_id)]
struct HTTPOrderPaid {
    order_id: i64,
}

fn main() {}
