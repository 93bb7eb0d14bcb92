#![deny(warnings)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[retryable(max_retries = 1)]
#[outbox_handler]
async fn charge_card(_event: OrderCreated) {}

fn main() {}
