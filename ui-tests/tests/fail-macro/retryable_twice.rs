#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(max_retries = 3)]
#[retryable(max_retries = 4)]
async fn charge_card(event: OrderCreated) {}

#[retryable(max_retries = 3)]
#[outbox_handler]
#[retryable(max_retries = 4)]
async fn send_receipt(event: OrderCreated) {}

fn main() {}
