#![allow(unused)]

use outbox::outbox_handler;

struct Payments;

#[outbox_handler]
impl Clone for Payments {
    fn clone(&self) -> Self {
        Self
    }
}

fn main() {}
