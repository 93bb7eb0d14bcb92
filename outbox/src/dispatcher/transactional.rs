//! A handler that takes a [`Tx`](crate::Tx): its effects and the completion of its record commit
//! together.

use tokio::sync::Mutex;

use crate::{
    BoxError, Database, Decision, HandlerEntry, HandlerError, Outcome,
    dispatch::fell_back,
    handler::{Context, Slot},
    lane::{Work, completed_row},
    outbox::Inner,
    store::Fence,
};

/// One attempt, with everything that its transaction needs.
pub(super) struct Transactional<'a, Db: Database> {
    pub(super) inner: &'a Inner<Db>,
    pub(super) handler: &'a HandlerEntry,
    pub(super) fence: &'a Fence,
    pub(super) work: &'a Work,
}

/// Nobody waits for the completion of a record that is not ours any more, or was discarded.
#[derive(Debug, thiserror::Error)]
#[error(
    "the record was not to be completed any more; nothing of the handler's transaction is kept"
)]
struct NotOurs;

impl<Db: Database> Transactional<'_, Db> {
    /// Like [`HandlerEntry::dispatch`]. What it decides is written once more by the lanes, which
    /// changes nothing then. Dropped in between, the transaction is rolled back.
    pub(super) async fn dispatch(&self) -> Decision {
        let Work {
            record, attempt, ..
        } = self.work;
        let (handler, inner) = (self.handler, self.inner);
        let needs = handler.transactions();
        let mut context = handler.context(record, *attempt, inner.registry.states());
        let outcome = match self.begin(&mut context, needs.handler).await {
            Ok(()) => handler.invoke(&mut context).await,
            Err(error) => Outcome::Failed(error),
        };
        let outcome = self.end(&mut context, outcome).await;
        match handler.decide(outcome, record, *attempt, &*inner.clock) {
            Decision::Failed { error, because } if handler.falls_back(because) => {
                let mut context = context.with_failure(error);
                let outcome = match self.begin(&mut context, needs.fallback).await {
                    Ok(()) => handler.invoke_fallback(&mut context).await,
                    Err(error) => Outcome::Failed(error),
                };
                let outcome = self.end(&mut context, outcome).await;
                fell_back(context, outcome, because)
            }
            decision => decision,
        }
    }

    async fn begin(&self, context: &mut Context, needed: bool) -> Result<(), HandlerError> {
        if needed {
            let transaction = Db::begin(&self.inner.pool).await.map_err(unavailable)?;
            context.transaction = Some(Box::new(Slot::<Db>(Mutex::new(transaction))));
        }
        Ok(())
    }

    /// Commits with the completion of the record, or rolls back.
    async fn end(&self, context: &mut Context, outcome: Outcome) -> Outcome {
        let slot = context.transaction.take();
        let Some(Ok(slot)) = slot.map(|slot| slot.downcast::<Slot<Db>>()) else {
            return outcome;
        };
        let mut transaction = slot.0.into_inner();
        if let Outcome::Failed(_) = outcome {
            // What cannot be rolled back ends with its connection.
            let _ = transaction.rollback().await;
            return outcome;
        }
        let row = completed_row(self.work, self.handler.id());
        let (names, keep) = (&self.inner.names, self.inner.keeps_completed());
        let (fence, stored) = (self.fence, self.work.stored);
        let completed = Db::complete(&mut transaction, names, fence, &row, stored, keep).await;
        let committed = match completed {
            Ok(true) => transaction.commit().await.map_err(unavailable),
            Ok(false) => {
                tracing::warn!(record = row.record_id, handler = row.handler, error = %NotOurs);
                transaction.rollback().await.map_err(unavailable)
            }
            // Ours, such as a deadlock with the dispatcher's own writing: not the event's fault.
            Err(error) => Err(HandlerError::unavailable(error)),
        };
        match committed {
            Ok(()) => outcome,
            Err(error) => Outcome::Failed(error),
        }
    }
}

/// A database that cannot be reached is not the event's fault, and uses up no retry. One that
/// refuses, as at a deferred constraint, is a failure like any other.
fn unavailable(error: sqlx::Error) -> HandlerError {
    match error {
        error @ sqlx::Error::Database(_) => HandlerError::from(BoxError::from(error)),
        error => HandlerError::unavailable(error),
    }
}
