#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable]
async fn charge_card(event: OrderCreated) {}

#[retryable()]
#[outbox_handler]
async fn send_receipt(event: OrderCreated) {}

fn main() {}
