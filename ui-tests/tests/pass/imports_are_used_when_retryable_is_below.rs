#![deny(warnings)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
#[retryable(max_retries = 1)]
async fn charge_card(_event: OrderCreated) {}

fn main() {}
