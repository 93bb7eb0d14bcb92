#![allow(unused)]

use outbox::{State, outbox_handler};
use outbox_ui_tests::{Bank, OrderCreated};

#[outbox_handler]
async fn charge_card(State(bank): State<Bank>, event: OrderCreated) {}

fn main() {}
