#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

#[outbox_handler(timeout)]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler(id("charge-card"))]
async fn send_receipt(event: OrderCreated) {}

#[outbox_handler("charge-card")]
async fn ship(event: OrderCreated) {}

fn main() {}
