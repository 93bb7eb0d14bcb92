#![allow(unused)]

use outbox::outbox_handler;
use outbox_ui_tests::Bank;

#[outbox_handler]
async fn charge_card(event: Bank) {}

fn main() {}
