#![allow(unused)]

use outbox::{Handler, Metadata, outbox_handler, retryable};
use outbox_ui_tests::OrderCreated;

struct Payments;

#[outbox_handler]
impl Handler<OrderCreated> for Payments {
    #[retryable(max_retries = 3)]
    async fn handle(&self, event: OrderCreated, meta: &Metadata) {}
}

fn main() {}
