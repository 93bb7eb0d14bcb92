#![allow(unused)]

use outbox::{OutboxEvent, outbox_handler};

#[derive(OutboxEvent)]
#[outbox_event(name = "order.created", key = order_id)]
struct OrderCreated {
    order_id: i64,
}

#[outbox_handler]
async fn charge_card(event: OrderCreated) {}

fn main() {}
