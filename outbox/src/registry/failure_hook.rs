//! [`FailureHook`]: the program's function for everything that failed permanently.

use std::{fmt, panic::AssertUnwindSafe, pin::Pin, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use tokio::time::timeout;

use crate::{
    handler::HandlerError,
    record::{AnyEvent, Metadata},
    retry::FailedBecause,
    telemetry::metrics::names,
};

/// A call of the hook ends after 10 s at the latest.
const LIMIT: Duration = Duration::from_secs(10);

type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A delivery that failed permanently, as [`OutboxBuilder::on_failed`](crate::OutboxBuilder::on_failed) gets
/// it.
#[derive(Debug)]
pub struct FailedDelivery {
    pub(crate) metadata: Metadata,
    pub(crate) error: HandlerError,
    pub(crate) because: FailedBecause,
}

impl FailedDelivery {
    /// The record, the handler and the number of the last attempt.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The id of the handler.
    #[must_use]
    pub fn handler(&self) -> &'static str {
        self.metadata.handler
    }

    /// The event, with its payload as text. The payload may be unreadable.
    #[must_use]
    pub fn event(&self) -> AnyEvent {
        AnyEvent {
            record: Arc::clone(&self.metadata.record),
        }
    }

    /// Why the last attempt failed. If the fallback failed too, the text names both errors.
    #[must_use]
    pub fn error(&self) -> &HandlerError {
        &self.error
    }

    /// Why there is no further attempt.
    #[must_use]
    pub fn because(&self) -> FailedBecause {
        self.because
    }
}

/// The program's function. The registry owns it; workers call it.
#[derive(Clone)]
pub(crate) struct FailureHook(Arc<dyn Fn(FailedDelivery) -> Call + Send + Sync>);

impl FailureHook {
    pub(super) fn new<F, Fut>(hook: F) -> Self
    where
        F: Fn(FailedDelivery) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self(Arc::new(move |failed| Box::pin(hook(failed))))
    }

    /// Calls the function and waits until it ends, panics or reaches its time limit. If this future is
    /// dropped, the call ends at its current `.await`; the failure is not written then, and the next attempt
    /// leads to another call.
    pub(crate) async fn call(&self, failed: FailedDelivery) {
        let (handler, record_id) = (failed.handler(), failed.metadata.record_id());
        // The block calls the function and owns its future: a panic in either, or in a destructor, is caught.
        let called = AssertUnwindSafe(async { timeout(LIMIT, (self.0)(failed)).await });
        let result = match called.catch_unwind().await {
            Ok(Ok(())) => "ended",
            Ok(Err(_)) => "timed_out",
            Err(_) => "panicked",
        };
        names::FAILURE_HOOKS.counter([result.into()]).increment(1);
        if result != "ended" {
            tracing::error!(
                handler,
                record_id,
                result,
                "on_failed hook did not end; the record has failed permanently all the same"
            );
        }
    }
}

impl fmt::Debug for FailureHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FailureHook")
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::Mutex};

    use tokio::time::Instant;

    use super::*;
    use crate::record::{Attempt, Record};

    fn failed() -> FailedDelivery {
        FailedDelivery {
            metadata: Metadata {
                record: Arc::new(Record::for_tests(7, "key", "order.created")),
                handler: "charge",
                attempt: Attempt::first(),
            },
            error: HandlerError::permanent("declined"),
            because: FailedBecause::Permanent,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_does_not_end_is_cancelled_after_ten_seconds() {
        let started = Instant::now();
        FailureHook::new(|_| pending()).call(failed()).await;
        assert_eq!(started.elapsed(), LIMIT);
    }

    #[tokio::test]
    async fn a_panic_of_the_function_of_its_future_and_of_a_destructor_is_caught() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("in a destructor")
            }
        }
        #[expect(
            unreachable_code,
            reason = "the function panics before there is a future"
        )]
        let hook = FailureHook::new(|_| {
            panic!("before the future");
            async {}
        });
        hook.call(failed()).await;
        FailureHook::new(|_| async { panic!("in the future") })
            .call(failed())
            .await;
        let hook = FailureHook::new(|_| async {
            let _bomb = Bomb;
        });
        hook.call(failed()).await;
    }

    #[tokio::test]
    async fn it_gets_the_record_the_error_and_the_reason() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let hook = {
            let seen = Arc::clone(&seen);
            FailureHook::new(move |failed: FailedDelivery| {
                let seen = Arc::clone(&seen);
                async move { seen.lock().unwrap().push(failed) }
            })
        };
        hook.call(failed()).await;
        let seen = seen.lock().unwrap();
        let [failed] = &**seen else {
            panic!("{seen:?}")
        };
        assert_eq!(
            (failed.metadata().record_id(), failed.handler()),
            (7, "charge")
        );
        assert_eq!(failed.event().name(), "order.created");
        assert_eq!(failed.error().to_string(), "declined");
        assert_eq!(failed.because(), FailedBecause::Permanent);
    }
}
