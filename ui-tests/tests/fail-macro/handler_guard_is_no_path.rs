#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

#[outbox_handler(when = |event, meta| true)]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler(fallback = refund())]
async fn send_receipt(event: OrderCreated) {}

#[outbox_handler(validate = "is_large")]
async fn count_orders(event: OrderCreated) {}

fn main() {}
