#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

struct Payments;

#[outbox_handler]
impl Payments {
    #[outbox_handler]
    #[retryable(max_retries = 1)]
    #[cfg_attr(all(), retryable(max_retries = 2))]
    async fn on_order(&self, event: OrderCreated) {}
}

fn main() {}
