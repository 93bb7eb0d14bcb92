#![allow(unused)]

use outbox::{outbox_handler as handler, retryable};
use outbox_ui_tests::OrderCreated;

#[retryable(max_retries = 3)]
#[handler]
async fn charge_card(event: OrderCreated) {}

fn main() {}
