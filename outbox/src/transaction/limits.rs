//! [`within_limits`]: interrupts an attempt, or the wait for the next one.

use std::{future::pending, pin::Pin, time::Duration};

use super::Reason;

/// Completes when the caller cancels the run.
pub(super) type Cancel = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs the future until it completes, `left` has passed or the caller cancels. `left` is measured
/// by tokio's timer and not by the injected clock, because it limits real work.
pub(super) async fn within_limits<T>(
    future: impl Future<Output = T>,
    left: Option<Duration>,
    cancel: &mut Option<Cancel>,
) -> Result<T, Reason> {
    let over = async {
        match left {
            Some(left) => tokio::time::sleep(left).await,
            None => pending().await,
        }
    };
    let cancelled = async {
        match cancel {
            Some(cancel) => cancel.await,
            None => pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancelled => Err(Reason::Cancelled),
        done = future => Ok(done),
        () = over => Err(Reason::Deadline),
    }
}
