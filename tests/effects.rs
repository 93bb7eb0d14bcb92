//! An event whose handler inserts a row, so that a test can count how often it was handled.

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;

/// The handler of this event inserts `n` into the table `effect`.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "effect", key = key)]
pub struct Effect {
    /// The key of its lane.
    pub key: String,
    /// The number that the handler inserts.
    pub n: i64,
}

/// Creates the table of effects, on each of the databases.
pub const TABLE: &str = "create table effect (n bigint not null)";

impl Effect {
    /// The statement that inserts one row. The number is part of its text, because each database
    /// marks parameters differently.
    pub fn write_sql<Db>(&self) -> sqlx::query::Query<'static, Db, Db::Arguments>
    where
        Db: sqlx::Database,
        Db::Arguments: sqlx::IntoArguments<Db>,
    {
        sqlx::query(AssertSqlSafe(format!(
            "insert into effect (n) values ({})",
            self.n
        )))
    }
}
