#![allow(unused)]

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "")]
struct OrderCreated {}

#[derive(Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = OrderPaid)]
struct OrderPaid {}

fn main() {}
