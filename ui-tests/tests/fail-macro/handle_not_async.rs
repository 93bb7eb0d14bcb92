#![allow(unused)]

use outbox::{Handler, Metadata, outbox_handler};
use outbox_ui_tests::{Declined, OrderCreated};

struct Payments;

#[outbox_handler]
impl Handler<OrderCreated> for Payments {
    fn handle(&self, event: OrderCreated, meta: &Metadata) -> Result<(), Declined> {
        Ok(())
    }
}

fn main() {}
