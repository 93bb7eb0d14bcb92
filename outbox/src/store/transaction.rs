//! How a retried transaction begins and ends on a database, and what its errors mean.

use sqlx::{Transaction, error::DatabaseError};

use crate::transaction::{Isolation, Reason};

/// How a transaction begins and ends, and what its errors mean.
pub trait TransactSql: sqlx::Database {
    /// Such a transaction changes settings of its session. The connection must not go back to the
    /// pool without [`rollback`](Self::rollback), not even when a future is dropped.
    #[doc(hidden)]
    const CHANGES_SESSION: bool = false;

    /// The statement that begins a transaction.
    #[doc(hidden)]
    fn begin_sql(isolation: Option<Isolation>, read_only: bool) -> String;

    /// Fails if a failed statement had ended the transaction and the closure did not notice.
    /// Otherwise commits; rolls back a read-only transaction where the database cannot enforce that.
    #[doc(hidden)]
    fn commit(
        transaction: Transaction<'static, Self>,
        read_only: bool,
    ) -> impl Future<Output = Result<(), NotCommitted>> + Send;

    /// Rolls back, and restores the settings of the session.
    #[doc(hidden)]
    fn rollback(
        transaction: Transaction<'static, Self>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// What an error of this database means.
    #[doc(hidden)]
    fn reason(error: &dyn DatabaseError) -> Reason;
}

/// A commit that the database did not confirm.
#[derive(Debug)]
pub struct NotCommitted {
    /// Whether the commit may have been sent.
    pub(crate) asked: bool,
    pub(crate) source: sqlx::Error,
}

impl NotCommitted {
    pub(crate) fn before(source: sqlx::Error) -> Self {
        Self {
            asked: false,
            source,
        }
    }

    pub(crate) fn during(source: sqlx::Error) -> Self {
        Self {
            asked: true,
            source,
        }
    }
}
