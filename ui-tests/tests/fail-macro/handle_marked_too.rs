#![allow(unused)]

use outbox::{Handler, Metadata, outbox_handler};
use outbox_ui_tests::OrderCreated;

struct Payments;

#[outbox_handler]
impl Handler<OrderCreated> for Payments {
    #[outbox_handler(timeout = "5s")]
    async fn handle(&self, event: OrderCreated, meta: &Metadata) {}
}

fn main() {}
