#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(policy = 3)]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler]
#[retryable(policy("gentle"))]
async fn send_receipt(event: OrderCreated) {}

fn main() {}
