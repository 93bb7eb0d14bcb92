#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

struct Payments;

#[outbox_handler]
#[retryable(max_retries = 3)]
impl Payments {
    #[outbox_handler]
    async fn on_order(&self, event: OrderCreated) {}
}

fn main() {}
