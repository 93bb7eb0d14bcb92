#![allow(unused)]

use outbox::outbox_handler;

#[outbox_handler]
struct ChargeCard;

fn main() {}
