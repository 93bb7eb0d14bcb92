//! [`Tx`] as a handler argument: the transaction in which the dispatcher completes the record.

use std::any::{Any, TypeId, type_name};

use sqlx::Transaction;
use tokio::sync::Mutex;

use super::{Context, FromContext, HandlerError, Requirements, argument::RequiredTransaction};
use crate::{store::Database, transaction::Tx};

impl<'a, Db: Database> FromContext<'a> for Tx<'a, Db> {
    fn from_context(context: &'a Context) -> Result<Self, HandlerError> {
        let slot = context.transaction.as_deref();
        let slot = slot.and_then(<dyn Any + Send + Sync>::downcast_ref);
        let slot: &OpenTransaction<Db> =
            slot.ok_or_else(|| HandlerError::permanent(NoTransaction))?;
        match slot.0.try_lock() {
            Ok(transaction) => Ok(Self::for_handler(transaction, context.metadata.attempt())),
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

/// The transaction of one invocation. The dispatcher begins it, the handler borrows it as a `Tx`, and
/// the dispatcher commits it. If it is dropped before, it is rolled back.
pub(crate) struct OpenTransaction<Db: Database>(pub(crate) Mutex<Transaction<'static, Db>>);

/// Happens only if the handler is called without an outbox.
#[derive(Debug, thiserror::Error)]
#[error("`Tx` is only available when an outbox on the same database delivers the record")]
struct NoTransaction;

#[derive(Debug, thiserror::Error)]
#[error("a handler can take one `Tx`, not two: an attempt has one transaction")]
struct TwoTransactions;
