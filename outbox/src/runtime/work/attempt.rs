//! [`HandlerAttempt`]: one attempt, with or without a transaction.               (I/O, with a `Tx` only)
//!
//! The effects of a handler that takes a [`Tx`](crate::Tx) and the completion of its
//! record commit together.

use std::sync::Arc;

use tokio::{sync::Mutex, time::sleep};
use tracing::{Instrument as _, Span};

use super::conflict;
use crate::{
    handler::{BoxError, Context, HandlerError, OpenTransaction, Outcome, invoke::after_fallback},
    outbox::Shared,
    record::{Metadata, failure::Failure},
    registry::{FailedDelivery, FailureHook, HandlerEntry},
    retry::{Completion, Decision},
    runtime::{
        lane::{AttemptEnd, Work, completed_row},
        ownership::StartPermit,
    },
    store::{Database, DeliveryCompletion, Fence},
    telemetry::{metrics::names, trace},
    transaction::Reason,
};

/// One attempt of one handler at one record. If it is dropped, its transaction is rolled back.
pub(crate) struct HandlerAttempt<'a, Db: Database> {
    pub(crate) inner: &'a Shared<Db>,
    pub(crate) handler: &'a HandlerEntry,
    pub(crate) fence: &'a Fence,
    pub(crate) work: &'a Work,
    /// `None`: the caller knows that the attempt may start.
    pub(crate) permit: Option<&'a StartPermit>,
}

/// A function of the user that may take a `Tx`.
#[derive(Debug, Clone, Copy)]
enum Function {
    Handler,
    Fallback,
}

/// The handler continued after the database had ended its transaction.
#[derive(Debug, thiserror::Error)]
#[error("the database had ended the handler's transaction, and the handler did not notice")]
struct TransactionEnded {
    source: sqlx::Error,
}

impl<Db: Database> HandlerAttempt<'_, Db> {
    /// Returns `None` if it was not started, because another process may own the record by now.
    /// With a `Tx` the handler's own transaction completes the record; the writer writes that once
    /// more, which changes nothing.
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
            // Boxed: these futures have kilobytes, by which every other invocation would grow.
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
        let outcome = self.run_function(&mut context, Function::Handler).await?;
        let decision = match handler.decide(outcome, &context, clock.now()) {
            Decision::Failed { error, because } if handler.has_fallback_for(because) => {
                context.failure = Some(error);
                let outcome = self.run_function(&mut context, Function::Fallback).await?;
                after_fallback(&mut context, outcome, because)
            }
            decision => decision,
        };
        handler.log_decision(&context, &decision, clock);
        Some(decision)
    }

    /// The program's `on_failed`, if the attempt failed permanently and the program has one.
    pub(crate) fn failure_hook(&self, decision: &Decision) -> Option<&FailureHook> {
        let hook = self.inner.registry.failure_hook();
        hook.filter(|_| matches!(decision, Decision::Failed { .. }))
    }

    /// The end of an attempt that no hook has to see.
    pub(crate) fn end(&self, decision: Decision) -> AttemptEnd {
        attempt_end(self.handler.id(), decision)
    }

    /// The end of a permanent failure, after the program's `on_failed`. The failure is written after that, so
    /// a process that dies in between calls the function again.
    pub(crate) async fn end_after_hook(
        &self,
        hook: &FailureHook,
        decision: Decision,
    ) -> AttemptEnd {
        let handler = self.handler.id();
        let Decision::Failed { error, because } = decision else {
            return attempt_end(handler, decision);
        };
        let failure = Failure::of(handler, &error);
        let metadata = Metadata {
            record: Arc::clone(&self.work.record),
            handler,
            attempt: self.work.attempt,
        };
        let failed = FailedDelivery {
            metadata,
            error,
            because,
        };
        // Boxed: few attempts fail, and every other one would carry the size of this future.
        Box::pin(hook.call(failed)).await;
        AttemptEnd::Failed { because, failure }
    }

    /// Runs the handler or its fallback, and again after a conflict with another transaction. `None`
    /// if another process may own the record by now.
    async fn run_function(&self, context: &mut Context, function: Function) -> Option<Outcome> {
        let (handler, mut repeats) = (self.handler, 0);
        let needs_transaction = match function {
            Function::Handler => handler.transactions.handler,
            Function::Fallback => handler.transactions.fallback,
        };
        loop {
            let outcome = match self.begin(context, needs_transaction).await {
                Ok(()) => match function {
                    // `begin` may have waited for a connection.
                    Function::Handler if !self.is_permitted() => return None,
                    Function::Handler => handler.invoke(context).await,
                    // The attempt has started, and may have lasted for longer than the permit. The fence
                    // decides whether its result is written.
                    Function::Fallback => handler.invoke_fallback(context).await,
                },
                Err(error) => Outcome::Failed(error),
            };
            let outcome = self.end_transaction(context, outcome).await;
            if !needs_transaction || !conflict::is_conflict::<Db>(&outcome) {
                return Some(outcome);
            }
            if repeats == conflict::MAX_REPEATS {
                return Some(conflict::exhausted(outcome));
            }
            names::HANDLER_CONFLICTS
                .counter([handler.id().into()])
                .increment(1);
            // Dropped here, the transaction is over and the record is delivered again.
            sleep(conflict::delay(repeats)).await;
            repeats += 1;
        }
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
    async fn end_transaction(&self, context: &mut Context, outcome: Outcome) -> Outcome {
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
            has_row: self.work.from_row,
            keep_completed: self.inner.keeps_completed(),
        };
        let completed = Db::complete_in_transaction(&mut transaction, sql, fence, completion).await;
        let ended = match completed {
            Ok(true) => transaction.commit().await,
            Ok(false) => {
                // Another process owns the record by now, or an operator has discarded it.
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
            Err(error) => Outcome::Failed(failure::<Db>(error)),
        }
    }
}

/// The decision without values of the user: errors become text. Workers call it, because printing
/// and dropping an error run code of the user, which the event loop must not do.
fn attempt_end(handler: &str, decision: Decision) -> AttemptEnd {
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
/// `unavailable`, which uses up no retry. Any other error, such as that of a deferred constraint,
/// is an ordinary failure.
fn failure<Db: Database>(error: sqlx::Error) -> HandlerError {
    let reason = Reason::of::<Db>(&error);
    let is_database_error = error.as_database_error().is_some();
    if !is_database_error || reason.is_conflict() || reason == Reason::LockTimeout {
        HandlerError::unavailable(error)
    } else {
        HandlerError::from(BoxError::from(error))
    }
}
