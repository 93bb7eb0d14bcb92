//! [`Tx`] as a handler argument: the transaction in which the dispatcher completes the record.

use std::any::Any;

use sqlx::Transaction;
use tokio::sync::Mutex;

use super::{Context, FromContext, HandlerError, Requirements, argument::RequiredType};
use crate::{
    store::Database,
    transaction::{Lent, Tx},
};

/// Happens only if the handler is called without an outbox.
const NO_TRANSACTION: &str =
    "`Tx` is only available when an outbox on the same database delivers the record";
const TWO_TRANSACTIONS: &str =
    "a handler can take one `Tx`, not two: an attempt has one transaction";

impl<'a, Db: Database> FromContext<'a> for Tx<'a, Db> {
    fn from_context(context: &'a Context) -> Result<Self, HandlerError> {
        let slot = context.transaction.as_deref();
        let slot = slot.and_then(<dyn Any + Send + Sync>::downcast_ref);
        let slot: Option<&OpenTransaction<Db>> = slot;
        let slot = slot.ok_or_else(|| HandlerError::permanent(NO_TRANSACTION))?;
        let transaction = slot.0.try_lock();
        let transaction = transaction.map_err(|_| HandlerError::permanent(TWO_TRANSACTIONS))?;
        Ok(Self::new(
            Lent::ToHandler(transaction),
            context.metadata.attempt(),
        ))
    }

    fn requires(requirements: &mut Requirements) {
        requirements.transaction = Some(RequiredType::of::<Db>());
    }
}

/// The transaction of one invocation. The dispatcher begins it, the handler borrows it as a `Tx`, and
/// the dispatcher commits it. If it is dropped before, it is rolled back.
pub(crate) struct OpenTransaction<Db: Database>(pub(crate) Mutex<Transaction<'static, Db>>);
