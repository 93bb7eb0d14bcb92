#![allow(unused)]

use outbox::outbox_handler;

#[outbox_handler]
async fn charge_card() {}

fn main() {}
