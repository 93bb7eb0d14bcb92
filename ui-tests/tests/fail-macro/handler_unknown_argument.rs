#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

#[outbox_handler(time_out = "30s")]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler(queue = "slow")]
async fn send_receipt(event: OrderCreated) {}

fn main() {}
