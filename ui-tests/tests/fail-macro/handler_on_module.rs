#![allow(unused)]

use outbox::outbox_handler;

#[outbox_handler]
mod payments {}

fn main() {}
