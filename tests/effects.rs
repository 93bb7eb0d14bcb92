//! An event whose handling is a row in a table: as many rows as it was handled.

use outbox::OutboxEvent;
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;

/// Handled by writing a row.
#[derive(Debug, Serialize, Deserialize, OutboxEvent)]
#[outbox_event(name = "effect", key = key)]
pub struct Effect {
    /// Its lane.
    pub key: String,
    /// What is written.
    pub n: i64,
}

/// The table of effects, on any of the databases.
pub const TABLE: &str = "create table effect (n bigint not null)";

impl Effect {
    /// The statement that leaves one row behind. The number is in it, because each database marks
    /// parameters differently.
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
