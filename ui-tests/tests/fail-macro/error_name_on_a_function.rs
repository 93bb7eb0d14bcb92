#![allow(unused)]

use outbox::error_name;

#[error_name("billing.declined")]
fn declined() {}

fn main() {}
