#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

struct Payments;

#[outbox_handler]
impl Payments {
    #[outbox_handler]
    async fn on_order(&mut self, event: OrderCreated) {}

    #[outbox_handler]
    async fn on_payment(self, event: OrderCreated) {}
}

fn main() {}
