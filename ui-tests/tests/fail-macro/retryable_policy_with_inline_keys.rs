#![allow(unused)]

use outbox::{Retry, outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(policy = Retry::default(), max_retries = 3)]
async fn charge_card(event: OrderCreated) {}

fn main() {}
