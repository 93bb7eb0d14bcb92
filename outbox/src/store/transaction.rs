//! Transactions that may be tried again: how one begins and ends, and what its failures mean.

use sqlx::{Transaction, error::DatabaseError};

use crate::transaction::{Isolation, Reason};

/// What ends a transaction, and what its errors mean.
pub trait TransactSql: sqlx::Database {
    /// A session has settings of its own while such a transaction is open: it is not to go back
    /// to the pool without [`rollback`](Self::rollback), not even when a future is dropped.
    #[doc(hidden)]
    const CHANGES_SESSION: bool = false;

    /// The statement that begins one.
    #[doc(hidden)]
    fn begin_sql(isolation: Option<Isolation>, read_only: bool) -> String;

    /// Fails if a statement failed in a way that ended the transaction, and the closure went on.
    /// Then commits, unless it is a read-only one that this database cannot hold to that.
    #[doc(hidden)]
    fn commit(
        transaction: Transaction<'static, Self>,
        read_only: bool,
    ) -> impl Future<Output = Result<(), NotCommitted>> + Send;

    /// Ends it, with nothing left behind in the session.
    #[doc(hidden)]
    fn rollback(
        transaction: Transaction<'static, Self>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// What an answer of this database means.
    #[doc(hidden)]
    fn reason(error: &dyn DatabaseError) -> Reason;
}

/// A commit that was not confirmed.
#[derive(Debug)]
pub struct NotCommitted {
    /// Whether the database may have been told to commit by then.
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
