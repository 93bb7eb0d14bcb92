#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
async fn charge_card(event: OrderCreated)
where
    OrderCreated: Send,
{
}

fn main() {}
