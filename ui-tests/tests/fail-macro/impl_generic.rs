#![allow(unused)]

use outbox::{Handler, Metadata, Registry, outbox_handler};
use outbox_ui_tests::OrderCreated;

struct Payments<B> {
    bank: B,
}

#[outbox_handler]
impl<B: Send + Sync + 'static> Payments<B> {
    #[outbox_handler]
    async fn on_order(&self, event: OrderCreated) {}
}

#[outbox_handler]
impl<B: Send + Sync + 'static> Handler<OrderCreated> for Payments<B> {
    async fn handle(&self, event: OrderCreated, meta: &Metadata) {}
}

fn main() {
    Registry::builder().handler::<Payments<u8>>();
}
