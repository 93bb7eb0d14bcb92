#![allow(unused)]

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", alias = ["order.new"])]
struct OrderCreated {
    order_id: i64,
}

fn main() {}
