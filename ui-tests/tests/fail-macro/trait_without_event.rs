#![allow(unused)]

use outbox::{Handler, Metadata, Registry, outbox_handler};
use outbox_ui_tests::OrderCreated;

struct Payments;

#[outbox_handler]
impl Handler for Payments {
    async fn handle(&self, event: OrderCreated, meta: &Metadata) {}
}

fn main() {
    Registry::builder().handler_for::<Payments, OrderCreated>();
}
