#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(max_retries = 3, max_attempts = 4)]
async fn charge_card(event: OrderCreated) {}

fn main() {}
