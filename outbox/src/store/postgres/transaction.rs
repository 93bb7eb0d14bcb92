//! Retried transactions on PostgreSQL.

use std::time::Duration;

use sqlx::{
    Executor as _, PgConnection, PgPool, Postgres, Row as _, Transaction, error::DatabaseError,
    pool::PoolConnection,
};

use crate::{
    store::{NotCommitted, TransactSql, transaction::execute_elsewhere, trusted},
    transaction::{Isolation, Reason},
};

impl TransactSql for Postgres {
    /// The id of the server's process.
    type Interrupt = i32;

    fn begin_sql(isolation: Option<Isolation>, read_only: bool) -> String {
        let level = isolation.map_or(String::new(), |level| format!(" isolation level {level}"));
        let mode = if read_only { " read only" } else { "" };
        format!("begin{level}{mode}")
    }

    async fn begin_attempt(
        mut connection: PoolConnection<Self>,
        begin_sql: String,
        _: Option<Duration>,
    ) -> Result<(Transaction<'static, Self>, i32), sqlx::Error> {
        // Before the transaction, so that `set transaction` can be the closure's first statement. Not
        // `set local statement_timeout`: it would replace a shorter one of the role or the database,
        // and each statement would get the whole time.
        let asked = connection.fetch_one("select pg_backend_pid()").await?;
        let process = asked.try_get(0)?;
        let transaction = Transaction::begin(connection, Some(trusted(begin_sql))).await?;
        Ok((transaction, process))
    }

    /// PostgreSQL ignores a cancellation while no statement runs.
    async fn interrupt(pool: &PgPool, process: &i32) -> Result<(), sqlx::Error> {
        let sql = format!("select pg_cancel_backend({process})");
        execute_elsewhere!(pool, PgConnection, sql)
    }

    async fn commit(
        mut transaction: Transaction<'static, Self>,
        _: bool,
    ) -> Result<(), NotCommitted> {
        // After a failed statement, `commit` rolls back and reports success.
        let alive = transaction.execute("select 1").await;
        alive.map_err(NotCommitted::before)?;
        transaction.commit().await.map_err(NotCommitted::during)
    }

    async fn rollback(transaction: Transaction<'static, Self>) -> Result<(), sqlx::Error> {
        transaction.rollback().await
    }

    fn reason(error: &dyn DatabaseError) -> Reason {
        let code = error.code();
        match code.as_deref().unwrap_or_default() {
            "40001" => Reason::SerializationFailure,
            "40P01" => Reason::Deadlock,
            "55P03" => Reason::LockTimeout,
            "57014" | "25P04" => Reason::StatementTimeout,
            "53300" => Reason::PoolTimeout,
            "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => Reason::ConnectionLost,
            "08007" | "40003" => Reason::CommitUnknown,
            "23505" | "23P01" => Reason::UniqueViolation,
            "23503" | "23001" => Reason::ForeignKeyViolation,
            "23514" => Reason::CheckViolation,
            "23502" => Reason::NotNullViolation,
            "42P01" | "42703" | "42883" | "42704" | "3F000" | "3D000" => Reason::MissingObject,
            "42501" => Reason::PermissionDenied,
            "25P02" => Reason::Aborted,
            code if code.starts_with("08") => Reason::ConnectionLost,
            code if code.starts_with("28") => Reason::PermissionDenied,
            code if code.starts_with("42") => Reason::SyntaxError,
            _ => Reason::Other,
        }
    }
}
