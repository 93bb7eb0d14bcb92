#![allow(unused)]

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.changed", key = order_id)]
enum OrderChanged {
    Paid { order_id: i64 },
    Shipped { order_id: i64 },
}

fn main() {}
