#![allow(unused)]

use outbox::{Handler, Metadata, Registry, State, outbox_handler};
use outbox_ui_tests::{Bank, OrderCreated};

struct Payments;

#[outbox_handler]
impl Handler<OrderCreated> for Payments {
    async fn handle(&self, event: OrderCreated, meta: &Metadata, State(bank): State<Bank>) {
        let _ = bank;
    }
}

fn main() {
    Registry::builder().handler_for::<Payments, OrderCreated>();
}
