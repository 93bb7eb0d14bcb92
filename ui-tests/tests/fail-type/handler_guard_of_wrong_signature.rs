#![allow(unused)]

use outbox::{Metadata, outbox_handler};
use outbox_ui_tests::OrderCreated;

#[outbox_handler(when = is_large)]
async fn charge_card(event: OrderCreated) {}

fn is_large(event: OrderCreated) -> bool {
    true
}

#[outbox_handler(when = amount)]
async fn send_receipt(event: OrderCreated) {}

fn amount(event: &OrderCreated, meta: &Metadata) -> i64 {
    1
}

fn main() {}
