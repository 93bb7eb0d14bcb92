//! [`HandlerAttempt`]: one attempt, with or without a transaction.               (I/O, with a `Tx` only)
//!
//! The effects of a handler that takes a [`Tx`](crate::handler::Tx) and the completion of its record
//! commit together.

use tokio::sync::Mutex;
use tracing::{Instrument as _, Span};

use crate::{
    handler::{BoxError, Context, HandlerError, OpenTransaction, Outcome, invoke::after_fallback},
    outbox::Shared,
    record::failure::Failure,
    registry::HandlerEntry,
    retry::{Completion, Decision},
    runtime::{
        lane::{AttemptEnd, Work, completed_row},
        ownership::StartPermit,
    },
    store::{Database, DeliveryCompletion, Fence},
    telemetry::trace,
};

/// One attempt of one handler at one record. Dropped in between, its transaction is rolled back.
pub(crate) struct HandlerAttempt<'a, Db: Database> {
    pub(crate) inner: &'a Shared<Db>,
    pub(crate) handler: &'a HandlerEntry,
    pub(crate) fence: &'a Fence,
    pub(crate) work: &'a Work,
    /// `None`: the caller knows that it may start.
    pub(crate) permit: Option<&'a StartPermit>,
}

/// The handler continued after the database had ended its transaction.
#[derive(Debug, thiserror::Error)]
#[error("the database had ended the handler's transaction, and the handler did not notice")]
struct TransactionEnded {
    source: sqlx::Error,
}

impl<Db: Database> HandlerAttempt<'_, Db> {
    /// `None` if it was not started, because another process may own the record by now. With a
    /// `Tx` the record is completed in the handler's own transaction; the lanes write it once more,
    /// which changes nothing.
    pub(crate) async fn run(&self) -> Option<Decision> {
        if !self.is_permitted() {
            return None;
        }
        let Work {
            record, attempt, ..
        } = self.work;
        let states = self.inner.registry.states();
        let context = self.handler.context(record, *attempt, states);
        if self.handler.transactions.any() {
            // Boxed: its futures are kilobytes, which every other invocation would carry along.
            return Box::pin(self.run_in_span(context)).await;
        }
        Some(self.handler.dispatch(context, &*self.inner.clock).await)
    }

    async fn run_in_span(&self, context: Context) -> Option<Decision> {
        let Work {
            record, attempt, ..
        } = self.work;
        let span = trace::attempt(self.handler, record, *attempt).unwrap_or_else(Span::none);
        let decision = self
            .run_in_transaction(context)
            .instrument(span.clone())
            .await;
        trace::decided(&span, decision.as_ref());
        decision
    }

    async fn run_in_transaction(&self, mut context: Context) -> Option<Decision> {
        let (handler, clock) = (self.handler, &*self.inner.clock);
        let needs = handler.transactions;
        let outcome = match self.begin(&mut context, needs.handler).await {
            // `begin` may have waited for a connection.
            Ok(()) if !self.is_permitted() => return None,
            Ok(()) => handler.invoke(&mut context).await,
            Err(error) => Outcome::Failed(error),
        };
        let outcome = self.end(&mut context, outcome).await;
        let decision = match handler.decide(outcome, &context, clock.now()) {
            Decision::Failed { error, because } if handler.has_fallback_for(because) => {
                context.failure = Some(error);
                let outcome = match self.begin(&mut context, needs.fallback).await {
                    Ok(()) => handler.invoke_fallback(&mut context).await,
                    Err(error) => Outcome::Failed(error),
                };
                let outcome = self.end(&mut context, outcome).await;
                after_fallback(&mut context, outcome, because)
            }
            decision => decision,
        };
        handler.log_decision(&context, &decision, clock);
        Some(decision)
    }

    fn is_permitted(&self) -> bool {
        self.permit.is_none_or(StartPermit::is_valid)
    }

    async fn begin(&self, context: &mut Context, needed: bool) -> Result<(), HandlerError> {
        if needed {
            let transaction = self.inner.pool.begin_with(Db::BEGIN).await;
            let mut transaction = transaction.map_err(HandlerError::unavailable)?;
            let marked = Db::mark_transaction(&mut transaction).await;
            marked.map_err(HandlerError::unavailable)?;
            context.transaction = Some(Box::new(OpenTransaction::<Db>(Mutex::new(transaction))));
        }
        Ok(())
    }

    /// Commits with the completion of the record, or rolls back.
    async fn end(&self, context: &mut Context, outcome: Outcome) -> Outcome {
        let slot = context.transaction.take();
        let Some(Ok(slot)) = slot.map(|slot| slot.downcast::<OpenTransaction<Db>>()) else {
            return outcome;
        };
        let mut transaction = slot.0.into_inner();
        if let Outcome::Failed(_) = outcome {
            // A transaction that cannot be rolled back ends with its connection.
            let _ = transaction.rollback().await;
            return outcome;
        }
        if let Err(error) = Db::check_mark(&mut transaction).await {
            let code = error.as_database_error().and_then(|error| error.code());
            // PostgreSQL: a statement of the handler had failed, and the handler did not notice.
            let is_ignored_error = code.as_deref() == Some("25P02");
            let ended = TransactionEnded { source: error };
            return Outcome::Failed(if is_ignored_error {
                HandlerError::from(ended)
            } else {
                HandlerError::unavailable(ended)
            });
        }
        let row = completed_row(self.work, self.handler.id());
        let (sql, fence) = (&*self.inner.sql, self.fence);
        let completion = DeliveryCompletion {
            row: &row,
            stored: self.work.from_row,
            keep: self.inner.keeps_completed(),
        };
        let completed = Db::complete_in_transaction(&mut transaction, sql, fence, completion).await;
        let ended = match completed {
            Ok(true) => transaction.commit().await,
            Ok(false) => {
                // Another process owns it by now, or an operator has discarded it.
                tracing::warn!(
                    record_id = row.record_id,
                    handler = row.handler,
                    "record no longer owned; the handler's transaction is rolled back"
                );
                transaction.rollback().await
            }
            Err(error) => Err(error),
        };
        match ended {
            Ok(()) => outcome,
            Err(error) => Outcome::Failed(failure(error)),
        }
    }
}

/// The decision without anything of the user's in it: errors become text. Workers call it, because
/// the text and the drop of an error are the user's code, which the event loop must not run.
pub(crate) fn attempt_end(handler: &str, decision: Decision) -> AttemptEnd {
    match decision {
        Decision::Completed(Completion::Handled) => AttemptEnd::Handled,
        Decision::Completed(Completion::Skipped) => AttemptEnd::Skipped,
        Decision::Completed(Completion::FellBack { error, .. }) => {
            AttemptEnd::FellBack(Failure::of(handler, &error))
        }
        Decision::RetryAt {
            delay, next, error, ..
        } => AttemptEnd::Retry {
            delay,
            next,
            failure: Failure::of(handler, &error),
        },
        Decision::Failed { error, because } => AttemptEnd::Failed {
            because,
            failure: Failure::of(handler, &error),
        },
        Decision::NoHandler(_) => AttemptEnd::NoHandler,
    }
}

/// A database that cannot be reached, or that ended this transaction in favour of another one, is
/// `unavailable`: it uses up no retry. Anything else is a failure like any other, as a deferred
/// constraint is.
fn failure(error: sqlx::Error) -> HandlerError {
    let code = error.as_database_error().and_then(|error| error.code());
    match code.as_deref() {
        // No database error; a deadlock or conflict (PostgreSQL, MySQL); a lock timeout (MySQL); a
        // busy SQLite.
        None | Some("40001" | "40P01" | "HY000" | "5" | "261" | "517") => {
            HandlerError::unavailable(error)
        }
        Some(_) => HandlerError::from(BoxError::from(error)),
    }
}
