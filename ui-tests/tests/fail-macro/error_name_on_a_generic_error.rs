#![allow(unused)]

use outbox::error_name;

#[error_name("billing.declined")]
#[derive(Debug, thiserror::Error)]
#[error("declined")]
struct Declined<T>(T);

fn main() {}
