#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
fn charge_card(event: OrderCreated) {}

fn main() {}
