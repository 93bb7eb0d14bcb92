//! One record through one handler, in memory: decode → arguments → handler → outcome →
//! decision. The runtime calls this and carries the decision out; nothing here touches a
//! database.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;

use crate::{
    Attempt, Clock, Completion, Context, Decision, FailedBecause, HandlerEntry, HandlerError,
    Metadata, NoHandler, Outcome, Panicked, Record, Registry, TimedOut, decide, handler::States,
    registry::Invocation,
};

impl Registry {
    /// Tries one handler at one record and decides what happens next.
    ///
    /// A panic and a timeout of the handler are failures like any other. A handler that is not
    /// registered here, or does not take this event, is [`Decision::NoHandler`].
    ///
    /// Dropping the future stops the handler where it is; nothing is decided then, and the
    /// attempt has to be made again.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use outbox::{outbox_handler, Attempt, Decision, OutboxEvent, Record, Registry, SystemClock};
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
    pub async fn dispatch(
        &self,
        handler: &str,
        record: &Arc<Record>,
        attempt: Attempt,
        clock: &dyn Clock,
    ) -> Decision {
        let entry = self.handler(handler);
        match entry.filter(|entry| entry.registration.event.accepts(&record.event)) {
            Some(entry) => entry.dispatch(record, attempt, self.states(), clock).await,
            None => Decision::NoHandler(NoHandler {
                handler: Some(handler.to_owned()),
                ..self.no_handler(&record.event)
            }),
        }
    }
}

impl HandlerEntry {
    /// The same for a handler that is known to take the event.
    pub(crate) async fn dispatch(
        &self,
        record: &Arc<Record>,
        attempt: Attempt,
        states: &Arc<States>,
        clock: &dyn Clock,
    ) -> Decision {
        let mut context = self.context(record, attempt, states);
        let outcome = self.invoke(&mut context).await;
        match self.decide(outcome, record, attempt, clock) {
            Decision::Failed { error, because } if self.falls_back(because) => {
                let mut context = context.with_failure(error);
                let outcome = self.invoke_fallback(&mut context).await;
                fell_back(context, outcome, because)
            }
            decision => decision,
        }
    }

    pub(crate) fn context(
        &self,
        record: &Arc<Record>,
        attempt: Attempt,
        states: &Arc<States>,
    ) -> Context {
        let metadata = Metadata::new(Arc::clone(record), self.id(), attempt);
        Context::new(metadata, Arc::clone(states))
    }

    /// Runs the handler.
    pub(crate) async fn invoke(&self, context: &mut Context) -> Outcome {
        guarded((self.registration.invoke)(context), self.timeout()).await
    }

    pub(crate) fn decide(
        &self,
        outcome: Outcome,
        record: &Record,
        attempt: Attempt,
        clock: &dyn Clock,
    ) -> Decision {
        let max_retries = record.max_retries;
        decide(outcome, &attempt, max_retries, self.policy(), clock.now())
    }

    /// Whether there is a fallback for this. A payload that is not an event has none: the
    /// fallback takes the event.
    pub(crate) fn falls_back(&self, because: FailedBecause) -> bool {
        self.registration.fallback.is_some() && because != FailedBecause::BadPayload
    }

    /// Runs the fallback, once.
    pub(crate) async fn invoke_fallback(&self, context: &mut Context) -> Outcome {
        match self.registration.fallback {
            Some(fallback) => guarded((fallback.invoke)(context), self.timeout()).await,
            None => Outcome::Failed(HandlerError::permanent("there is no fallback")),
        }
    }
}

/// What a fallback's outcome makes of a handler's failure.
pub(crate) fn fell_back(context: Context, outcome: Outcome, because: FailedBecause) -> Decision {
    let error = context.into_failure();
    match outcome {
        Outcome::Handled | Outcome::Skipped => {
            Decision::Completed(Completion::FellBack { error, because })
        }
        Outcome::Failed(of_fallback) => Decision::Failed {
            error: error.and_then("fallback", &of_fallback),
            because,
        },
    }
}

/// Runs an invocation to its end, its time limit or its panic.
async fn guarded(invocation: Invocation<'_>, limit: Option<Duration>) -> Outcome {
    // The invocation is dropped inside, so that a panic in a destructor is caught as well.
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
