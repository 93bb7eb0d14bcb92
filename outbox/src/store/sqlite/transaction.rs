//! Transactions that may be tried again, on SQLite.

use sqlx::{Sqlite, Transaction, error::DatabaseError};

use crate::{
    store::{NotCommitted, TransactSql},
    transaction::{Isolation, Reason},
};

impl TransactSql for Sqlite {
    /// Every level is serializable here. One that writes is the only writer from its start:
    /// nothing that it has read can change before it writes.
    fn begin_sql(_: Option<Isolation>, read_only: bool) -> String {
        let kind = if read_only { "deferred" } else { "immediate" };
        format!("begin {kind}")
    }

    async fn commit(
        transaction: Transaction<'static, Self>,
        read_only: bool,
    ) -> Result<(), NotCommitted> {
        if read_only {
            return transaction.rollback().await.map_err(NotCommitted::before);
        }
        // A transaction that SQLite has ended itself cannot be committed, and it says so.
        transaction.commit().await.map_err(NotCommitted::during)
    }

    async fn rollback(transaction: Transaction<'static, Self>) -> Result<(), sqlx::Error> {
        transaction.rollback().await
    }

    fn reason(error: &dyn DatabaseError) -> Reason {
        let code = error.code().and_then(|code| code.parse().ok());
        let code: i32 = code.unwrap_or(0);
        match code {
            517 => Reason::SerializationFailure, // busy: what was read has changed
            2067 | 1555 | 2579 => Reason::UniqueViolation,
            787 => Reason::ForeignKeyViolation,
            275 => Reason::CheckViolation,
            1299 => Reason::NotNullViolation,
            _ => match code & 0xff {
                5 | 6 => Reason::Busy,
                9 => Reason::StatementTimeout, // interrupted
                14 => Reason::ConnectionLost,  // cannot open
                3 | 8 | 23 => Reason::PermissionDenied,
                1 => by_text(error.message()),
                _ => Reason::Other,
            },
        }
    }
}

/// One code stands for many mistakes; only the text tells them apart.
fn by_text(message: &str) -> Reason {
    if message.starts_with("no such") || message.contains("has no column named") {
        Reason::MissingObject
    } else if message.contains("syntax error") || message.contains("incomplete input") {
        Reason::SyntaxError
    } else if message.contains("no transaction is active") {
        Reason::Aborted
    } else {
        Reason::Other
    }
}
