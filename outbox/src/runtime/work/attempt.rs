//! A handler that takes a [`Tx`](crate::handler::Tx): its effects and the completion of its record commit
//! together.

use tokio::sync::Mutex;
use tracing::{Instrument as _, Span};

use crate::runtime::ownership::permit::StartPermit;
use crate::{
    handler::{BoxError, Context, HandlerError, Outcome, Slot, invoke::fell_back},
    outbox::Shared,
    registry::HandlerEntry,
    retry::Decision,
    runtime::lane::{Work, completed_row},
    store::{Database, Fence},
    telemetry::trace,
};

/// One attempt, with everything that its transaction needs.
pub(crate) struct HandlerAttempt<'a, Db: Database> {
    pub(crate) inner: &'a Shared<Db>,
    pub(crate) handler: &'a HandlerEntry,
    pub(crate) fence: &'a Fence,
    pub(crate) work: &'a Work,
    /// None: whoever calls knows that it may.
    pub(crate) permit: Option<&'a StartPermit>,
}

/// Nobody waits for the completion of a record that is not ours any more, or was discarded.
#[derive(Debug, thiserror::Error)]
#[error(
    "the record was not to be completed any more; nothing of the handler's transaction is kept"
)]
struct NotOurs;

/// The handler went on after the database had ended its transaction.
#[derive(Debug, thiserror::Error)]
#[error("the database had ended the handler's transaction, and the handler did not notice")]
struct GaveUp {
    source: sqlx::Error,
}

impl<Db: Database> HandlerAttempt<'_, Db> {
    /// Like [`HandlerEntry::dispatch`]. With a transaction, what it decides is written once more
    /// by the lanes, which changes nothing then. Dropped in between, the transaction is rolled
    /// back. None if it was not begun, because it might not be ours any more.
    pub(crate) async fn dispatch(&self) -> Option<Decision> {
        if !self.is_permitted() {
            return None;
        }
        let Work {
            record, attempt, ..
        } = self.work;
        if self.handler.transactions.any() {
            // Apart: its futures are kilobytes, which every other invocation would carry along.
            return Box::pin(self.in_transaction_and_span()).await;
        }
        let (states, clock) = (self.inner.registry.states(), &*self.inner.clock);
        let decision = self.handler.dispatch(record, *attempt, states, clock);
        Some(decision.await)
    }

    async fn in_transaction_and_span(&self) -> Option<Decision> {
        let Work {
            record, attempt, ..
        } = self.work;
        let span = trace::attempt(self.handler, record, *attempt).unwrap_or_else(Span::none);
        let decision = self.in_transaction().instrument(span.clone()).await;
        trace::decided(&span, decision.as_ref());
        decision
    }

    async fn in_transaction(&self) -> Option<Decision> {
        let Work {
            record, attempt, ..
        } = self.work;
        let (handler, inner) = (self.handler, self.inner);
        let (needs, states) = (handler.transactions, inner.registry.states());
        let mut context = handler.context(record, *attempt, states);
        let outcome = match self.begin(&mut context, needs.handler).await {
            // It may have waited for its connection.
            Ok(()) if !self.is_permitted() => return None,
            Ok(()) => handler.invoke(&mut context).await,
            Err(error) => Outcome::Failed(error),
        };
        let outcome = self.end(&mut context, outcome).await;
        let decision = match handler.decide(outcome, record, *attempt, &*inner.clock) {
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
        };
        handler.decided(record, *attempt, &decision, &*inner.clock);
        Some(decision)
    }

    fn is_permitted(&self) -> bool {
        self.permit.is_none_or(StartPermit::holds)
    }

    async fn begin(&self, context: &mut Context, needed: bool) -> Result<(), HandlerError> {
        if needed {
            let transaction = self.inner.pool.begin_with(Db::BEGIN).await;
            let mut transaction = transaction.map_err(HandlerError::unavailable)?;
            let marked = Db::mark_transaction(&mut transaction).await;
            marked.map_err(HandlerError::unavailable)?;
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
        if let Err(error) = Db::check_mark(&mut transaction).await {
            let code = error.as_database_error().and_then(|error| error.code());
            // In PostgreSQL a statement of the handler had failed, and it did not notice.
            let ignored = code.as_deref() == Some("25P02");
            let gave_up = GaveUp { source: error };
            return Outcome::Failed(match ignored {
                true => HandlerError::from(gave_up),
                false => HandlerError::unavailable(gave_up),
            });
        }
        let row = completed_row(self.work, self.handler.id());
        let (names, keep) = (&self.inner.names, self.inner.keeps_completed());
        let (fence, stored) = (self.fence, self.work.read);
        let completed =
            Db::complete_in_transaction(&mut transaction, names, fence, &row, stored, keep).await;
        let committed = match completed {
            Ok(true) => transaction.commit().await.map_err(failure),
            Ok(false) => {
                tracing::warn!(record_id = row.record_id, handler = row.handler, error = %NotOurs);
                transaction.rollback().await.map_err(failure)
            }
            Err(error) => Err(failure(error)),
        };
        match committed {
            Ok(()) => outcome,
            Err(error) => Outcome::Failed(error),
        }
    }
}

/// A database that cannot be reached, or gave the transaction up for another one, is not the
/// event's fault, and uses up no retry. Anything else is a failure like any other: a deferred
/// constraint, or a transaction that PostgreSQL ended because the handler ignored an error.
fn failure(error: sqlx::Error) -> HandlerError {
    let code = error.as_database_error().and_then(|error| error.code());
    match code.as_deref() {
        // No database error; a deadlock or conflict (PostgreSQL, MySQL), a lock that was waited
        // for too long (MySQL), a busy SQLite.
        None | Some("40001" | "40P01" | "HY000" | "5" | "261" | "517") => {
            HandlerError::unavailable(error)
        }
        Some(_) => HandlerError::from(BoxError::from(error)),
    }
}
