#![allow(unused)]

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.created", version = 0)]
struct OrderCreated {}

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "order.paid", version = "2")]
struct OrderPaid {}

fn main() {}
