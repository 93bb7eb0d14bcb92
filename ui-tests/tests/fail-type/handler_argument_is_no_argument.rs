#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::{Bank, OrderCreated};

#[outbox_handler]
async fn charge_card(event: OrderCreated, bank: Bank, dry_run: bool) {}

fn main() {}
