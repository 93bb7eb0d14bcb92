#![allow(unused)]

use outbox::{Metadata, outbox_handler};
use outbox_ui_tests::OrderCreated;

#[outbox_handler]
async fn charge_card<'a>(event: OrderCreated, meta: &'a Metadata) {}

fn main() {}
