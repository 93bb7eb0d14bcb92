#![allow(unused)]

use outbox::{outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

struct Payments;

#[outbox_handler]
impl Payments {
    #[outbox_handler]
    async fn on_order(&self, event: OrderCreated) {}

    #[retryable(max_retries = 3)]
    async fn on_payment(&self, event: OrderCreated) {}
}

fn main() {}
