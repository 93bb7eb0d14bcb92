#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(fixed("0ms"))]
async fn charge_card(event: OrderCreated) {}

#[outbox_handler]
#[retryable(max_elapsed = "0s")]
async fn send_receipt(event: OrderCreated) {}

fn main() {}
