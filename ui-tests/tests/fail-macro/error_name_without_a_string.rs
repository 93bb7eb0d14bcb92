#![allow(unused)]

use outbox::error_name;

#[error_name]
#[derive(Debug, thiserror::Error)]
#[error("declined")]
struct Declined;

#[error_name(billing.late)]
#[derive(Debug, thiserror::Error)]
#[error("late")]
struct Late;

#[error_name("")]
#[derive(Debug, thiserror::Error)]
#[error("lost")]
struct Lost;

fn main() {}
