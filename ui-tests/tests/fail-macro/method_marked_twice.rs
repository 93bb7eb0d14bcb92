#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

struct Payments;

#[outbox_handler]
impl Payments {
    #[outbox_handler]
    #[outbox_handler(timeout = "5s")]
    async fn on_order(&self, event: OrderCreated) {}
}

fn main() {}
