//! [`within_limits`]: interrupts an attempt, or the wait for the next one.

use std::{pin::Pin, time::Duration};

use futures_util::future::OptionFuture;
use tokio::time::sleep;

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
    tokio::select! {
        biased;
        Some(()) = OptionFuture::from(cancel.as_mut()) => Err(Reason::Cancelled),
        done = future => Ok(done),
        Some(()) = OptionFuture::from(left.map(sleep)) => Err(Reason::Deadline),
    }
}
