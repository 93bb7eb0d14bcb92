#![allow(unused)]

use outbox::{outbox_handler, retryable as retry};
use outbox_ui_tests::OrderCreated;

#[retry(max_retries = 3)]
#[outbox_handler]
async fn charge_card(event: OrderCreated) {}

fn main() {}
