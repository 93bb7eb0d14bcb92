#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

#[outbox_handler(aliases = "charge")]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler(id = "receipt", aliases = ["send-receipt", "receipt"])]
async fn send_receipt(event: OrderCreated) {}

fn main() {}
