//! PostgreSQL.

mod delivery;
mod dialect;
mod fetch;
mod lease;
mod publish;
mod schema;
mod settle;
mod transaction;
mod watch;

use sqlx::Postgres;

use super::{Database, Driver};

impl Database for Postgres {}

impl Driver for Postgres {}

/// Partitions as this database stores them.
fn signed(parts: &[u16]) -> Vec<i16> {
    parts.iter().map(|part| part.cast_signed()).collect()
}
