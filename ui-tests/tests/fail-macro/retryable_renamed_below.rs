#![allow(unused)]

use outbox::{outbox_handler, retryable as retry};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retry(max_retries = 3)]
async fn charge_card(event: OrderCreated) {}

fn main() {}
