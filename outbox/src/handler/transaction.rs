//! [`Tx`]: the transaction in which a record is completed, as a handler argument.

use std::{
    any::{Any, TypeId, type_name},
    fmt,
    ops::{Deref, DerefMut},
};

use sqlx::Transaction;
use tokio::sync::{Mutex, MutexGuard};

use super::{Context, FromContext, HandlerError, Requirements, argument::RequiredTransaction};
use crate::store::Database;

/// A handler argument: the transaction in which the record is completed.
///
/// What the handler writes with it and the completion of the record commit together: the
/// handler's effects in this database happen exactly once, whatever is killed. If the handler
/// fails, they are undone. Effects elsewhere (a mail, another service) may still be repeated.
///
/// It is a connection: use it as `&mut *tx`. The commit is the dispatcher's.
///
/// ```
/// # use outbox::{outbox_handler, OutboxEvent, Tx};
/// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
/// # #[outbox_event(name = "order.created", key = order_id)]
/// # struct OrderCreated { order_id: i64, total_cents: i64 }
/// #[outbox_handler]
/// async fn add_to_revenue(event: OrderCreated, mut tx: Tx<'_, sqlx::Sqlite>) -> Result<(), sqlx::Error> {
///     sqlx::query("update revenue set cents = cents + ?1")
///         .bind(event.total_cents)
///         .execute(&mut *tx)
///         .await?;
///     Ok(())
/// }
/// ```
///
/// Keep such a handler short: it holds a connection of the pool, and on SQLite the only writer.
pub struct Tx<'a, Db: Database> {
    transaction: MutexGuard<'a, Transaction<'static, Db>>,
}

impl<'a, Db: Database> FromContext<'a> for Tx<'a, Db> {
    fn from_context(context: &'a Context) -> Result<Self, HandlerError> {
        let slot = context.transaction.as_deref();
        let slot = slot.and_then(<dyn Any + Send + Sync>::downcast_ref);
        let slot: &Slot<Db> = slot.ok_or_else(|| HandlerError::permanent(NoTransaction))?;
        match slot.0.try_lock() {
            Ok(transaction) => Ok(Self { transaction }),
            Err(_) => Err(HandlerError::permanent(TwoTransactions)),
        }
    }

    fn requires(requirements: &mut Requirements) {
        requirements.transaction = Some(RequiredTransaction {
            ty: TypeId::of::<Db>(),
            name: type_name::<Db>(),
        });
    }
}

impl<Db: Database> Deref for Tx<'_, Db> {
    type Target = Db::Connection;

    fn deref(&self) -> &Self::Target {
        &self.transaction
    }
}

impl<Db: Database> DerefMut for Tx<'_, Db> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.transaction
    }
}

impl<Db: Database> fmt::Debug for Tx<'_, Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").finish_non_exhaustive()
    }
}

/// Where the transaction of one invocation is: put in before it by the dispatcher, borrowed by
/// the handler, taken out afterwards to be committed. Dropped in between, it is rolled back.
pub(crate) struct Slot<Db: Database>(pub(crate) Mutex<Transaction<'static, Db>>);

/// Only where a handler is called without an outbox.
#[derive(Debug, thiserror::Error)]
#[error("a `Tx` of this database is there only when an outbox on it delivers the record")]
struct NoTransaction;

#[derive(Debug, thiserror::Error)]
#[error("a handler can take one `Tx`, not two: there is one transaction")]
struct TwoTransactions;
