//! One record through one handler: decode → arguments → handler → outcome → decision. The runtime
//! calls these functions and writes the decision. Nothing here touches a database.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::Either};
use jiff::Timestamp;
use tracing::{Instrument as _, Span};

use crate::{
    handler::{Context, HandlerError, Outcome, Panicked, States, TimedOut},
    outbox::clock::Clock,
    record::{Attempt, Metadata, Record},
    registry::{HandlerEntry, Invocation, Registry},
    retry::{Completion, Decision, FailedBecause, NoHandler, decide},
    telemetry::trace,
};

impl Registry {
    /// Runs one handler with one record and decides what happens next. For tests of this library;
    /// programs use `testing::Kit`.
    ///
    /// A panic and a timeout of the handler are failures. A handler that is not registered, or that
    /// does not take this event, results in [`Decision::NoHandler`].
    ///
    /// Dropping the future stops the handler at its current `.await`. There is no decision then, and
    /// the attempt has to be repeated.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use outbox::{OutboxEvent, Registry, __private::{Attempt, Decision}, clock::SystemClock, outbox_handler, record::Record};
    /// # #[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]
    /// # #[outbox_event(name = "order.created")]
    /// # struct OrderCreated {}
    /// #[outbox_handler(id = "send-receipt")]
    /// async fn send_receipt(event: OrderCreated) {}
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = Registry::builder().handler::<send_receipt>().build()?;
    /// let record = Arc::new(Record::of(&OrderCreated {}, &SystemClock)?);
    /// let decision = registry.dispatch("send-receipt", &record, Attempt::first(), &SystemClock).await;
    /// assert!(matches!(decision, Decision::Completed(_)));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(hidden)]
    pub async fn dispatch(
        &self,
        handler: &str,
        record: &Arc<Record>,
        attempt: Attempt,
        clock: &dyn Clock,
    ) -> Decision {
        let entry = self.handler(handler);
        match entry.filter(|entry| entry.registration.event.accepts(&record.event)) {
            Some(entry) => {
                let context = entry.context(record, attempt, self.states());
                entry.dispatch(context, clock).await
            }
            None => Decision::NoHandler(NoHandler {
                handler: Some(handler.to_owned()),
                ..self.no_handler(&record.event)
            }),
        }
    }
}

impl HandlerEntry {
    /// Like [`Registry::dispatch`], for a handler that takes the event. Await the future at once: the
    /// span of the attempt begins with this call. Without a span, the future is not boxed.
    pub(crate) fn dispatch<'a>(
        &'a self,
        context: Context,
        clock: &'a dyn Clock,
    ) -> impl Future<Output = Decision> + Send + 'a {
        let span = trace::attempt(self, &context.metadata.record, context.metadata.attempt);
        let attempt = self.attempt(context, clock);
        let Some(span) = span else {
            return Either::Left(attempt);
        };
        Either::Right(Box::pin(async move {
            let decision = attempt.instrument(span.clone()).await;
            trace::decided(&span, Some(&decision));
            decision
        }))
    }

    async fn attempt(&self, mut context: Context, clock: &dyn Clock) -> Decision {
        let outcome = self.invoke(&mut context).await;
        let decision = match self.decide(outcome, &context, clock.now()) {
            Decision::Failed { error, because } if self.has_fallback_for(because) => {
                context.failure = Some(error);
                let outcome = self.invoke_fallback(&mut context).await;
                after_fallback(&mut context, outcome, because)
            }
            decision => decision,
        };
        self.log_decision(&context, &decision, clock);
        decision
    }

    /// Logs the decision. Call it inside the attempt's span, so that the line belongs to its trace.
    pub(crate) fn log_decision(&self, context: &Context, decision: &Decision, clock: &dyn Clock) {
        if !matches!(decision, Decision::Completed(Completion::Handled)) {
            let (record, attempt) = (&context.metadata.record, context.metadata.attempt);
            let now = clock.now();
            self.log.decided(self, record, attempt, decision, now);
        }
    }

    pub(crate) fn context(
        &self,
        record: &Arc<Record>,
        attempt: Attempt,
        states: &Arc<States>,
    ) -> Context {
        Context {
            metadata: Metadata {
                record: Arc::clone(record),
                handler: self.id(),
                attempt,
            },
            states: Arc::clone(states),
            failure: None,
            transaction: None,
        }
    }

    /// Runs the handler.
    pub(crate) fn invoke<'a>(
        &self,
        context: &'a mut Context,
    ) -> impl Future<Output = Outcome> + Send + use<'a> {
        let span = trace::handler(context.metadata(), false);
        traced((self.registration.invoke)(context), self.timeout(), span)
    }

    pub(crate) fn decide(&self, outcome: Outcome, context: &Context, now: Timestamp) -> Decision {
        let Metadata {
            record, attempt, ..
        } = &context.metadata;
        let max_retries = self.stored_max_retries(record);
        decide(outcome, attempt, max_retries, self.policy(), now)
    }

    /// Whether the fallback runs after this failure. It takes the event, so it cannot run for a payload
    /// that is not a valid event.
    pub(crate) fn has_fallback_for(&self, because: FailedBecause) -> bool {
        self.registration.fallback.is_some() && because != FailedBecause::BadPayload
    }

    /// Runs the fallback.
    pub(crate) async fn invoke_fallback(&self, context: &mut Context) -> Outcome {
        match self.registration.fallback {
            Some(fallback) => {
                let span = trace::handler(context.metadata(), true);
                traced((fallback.invoke)(context), self.timeout(), span).await
            }
            None => Outcome::Failed(HandlerError::permanent("the handler has no fallback")),
        }
    }
}

/// The decision about a failed handler after its fallback has run.
pub(crate) fn after_fallback(
    context: &mut Context,
    outcome: Outcome,
    because: FailedBecause,
) -> Decision {
    let failure = context.failure.take();
    let error = failure.unwrap_or_else(|| HandlerError::permanent("the handler failed"));
    let Outcome::Failed(of_fallback) = outcome else {
        return Decision::Completed(Completion::FellBack { error, because });
    };
    let error = error.followed_by("fallback", &of_fallback);
    Decision::Failed { error, because }
}

/// Runs an invocation inside its span, if tracing is on.
fn traced(
    invocation: Invocation<'_>,
    limit: Option<Duration>,
    span: Option<Span>,
) -> impl Future<Output = Outcome> + Send {
    let Some(span) = span else {
        return Either::Left(within_limits(invocation, limit));
    };
    Either::Right(Box::pin(async move {
        let invocation = Box::pin(invocation.instrument(span.clone()));
        let outcome = within_limits(invocation, limit).await;
        trace::invoked(&span, &outcome);
        outcome
    }))
}

/// Runs an invocation until it ends, reaches its time limit or panics.
async fn within_limits(invocation: Invocation<'_>, limit: Option<Duration>) -> Outcome {
    // The block owns the invocation and drops it, so a panic in a destructor is caught too.
    let limited = async move {
        match limit {
            None => invocation.await,
            Some(limit) => tokio::time::timeout(limit, invocation)
                .await
                .unwrap_or_else(|_| Outcome::Failed(TimedOut::after(limit))),
        }
    };
    AssertUnwindSafe(limited)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Outcome::Failed(Panicked::with(&*panic)))
}
