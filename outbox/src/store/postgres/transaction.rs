//! Transactions that may be tried again, on PostgreSQL.

use sqlx::{Executor as _, Postgres, Transaction, error::DatabaseError};

use crate::{
    store::{NotCommitted, TransactSql},
    transaction::{Isolation, Reason},
};

impl TransactSql for Postgres {
    fn begin_sql(isolation: Option<Isolation>, read_only: bool) -> String {
        let level = isolation.map_or(String::new(), |level| format!(" isolation level {level}"));
        let mode = if read_only { " read only" } else { "" };
        format!("begin{level}{mode}")
    }

    async fn commit(
        mut transaction: Transaction<'static, Self>,
        _: bool,
    ) -> Result<(), NotCommitted> {
        // After a failed statement `commit` rolls back, and says that all is well.
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
