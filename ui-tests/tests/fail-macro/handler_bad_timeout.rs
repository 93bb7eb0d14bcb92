#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

#[outbox_handler(timeout = 30)]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler(timeout = "30 apples")]
async fn send_receipt(event: OrderCreated) {}

#[outbox_handler(timeout = "0s")]
async fn ship(event: OrderCreated) {}

fn main() {}
