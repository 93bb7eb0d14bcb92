#![allow(unused)]

use outbox::OutboxEvent;

#[derive(OutboxEvent)]
#[outbox_event(name = "order.created")]
union OrderCreated {
    order_id: i64,
    number: u64,
}

fn main() {}
