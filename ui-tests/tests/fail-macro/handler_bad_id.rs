#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

#[outbox_handler(id = "")]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler(id = "send-receipt ")]
async fn send_receipt(event: OrderCreated) {}

#[outbox_handler(id = ship_order)]
async fn ship(event: OrderCreated) {}

fn main() {}
