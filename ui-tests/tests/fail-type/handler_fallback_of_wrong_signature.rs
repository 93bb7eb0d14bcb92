#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

#[outbox_handler(fallback = refund)]
async fn charge_card(event: OrderCreated) {}

async fn refund(event: &OrderCreated) {}

#[outbox_handler(fallback = apologise)]
async fn send_receipt(event: OrderCreated) {}

fn apologise(event: OrderCreated) {}

fn main() {}
