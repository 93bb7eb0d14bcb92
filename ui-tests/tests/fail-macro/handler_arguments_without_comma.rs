#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

#[outbox_handler(id = "charge-card" timeout = "30s")]
async fn charge_card(event: OrderCreated) {}

fn main() {}
