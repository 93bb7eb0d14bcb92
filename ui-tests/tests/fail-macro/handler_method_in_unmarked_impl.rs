#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::OrderCreated;

struct Payments;

impl Payments {
    #[outbox_handler]
    async fn on_order(&self, event: OrderCreated) {}
}

fn main() {}
