//! [`within_limits`]: interrupts an attempt, or the wait for the next one.

use std::{pin::Pin, time::Duration};

use futures_util::future::OptionFuture;
use tokio::time::sleep;

use super::Reason;

/// Completes when the caller cancels the run.
pub(super) type Cancel = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The time after which an attempt is stopped, and the reason that it then fails with. Measured by
/// tokio's timer and not by the injected clock, because it limits real work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) after: Duration,
    pub(super) reason: Reason,
}

impl Limit {
    /// The earlier of the deadline, which leaves `left`, and the limit of one attempt.
    pub(super) fn of_attempt(left: Option<Duration>, timeout: Option<Duration>) -> Option<Self> {
        let deadline = left.map(|after| (after, Reason::Deadline));
        let timeout = timeout.map(|after| (after, Reason::AttemptTimeout));
        let earlier = deadline
            .into_iter()
            .chain(timeout)
            .min_by_key(|limit| limit.0);
        earlier.map(|(after, reason)| Self { after, reason })
    }
}

/// Runs the future until it completes, the limit has passed or the caller cancels. Then the future is
/// dropped: the caller stops the statement that it may have left behind.
pub(super) async fn within_limits<T>(
    future: impl Future<Output = T>,
    limit: Option<Limit>,
    cancel: &mut Option<Cancel>,
) -> Result<T, Reason> {
    tokio::select! {
        biased;
        Some(()) = OptionFuture::from(cancel.as_mut()) => Err(Reason::Cancelled),
        done = future => Ok(done),
        Some(reason) = OptionFuture::from(limit.map(passed)) => Err(reason),
    }
}

async fn passed(limit: Limit) -> Reason {
    sleep(limit.after).await;
    limit.reason
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_limit_names_the_reason() {
        let [short, long] = [Duration::from_secs(1), Duration::from_secs(2)];
        let limit = |left, timeout| {
            let limit = Limit::of_attempt(left, timeout);
            limit.map(|limit| (limit.after, limit.reason))
        };
        let deadline = Some((short, Reason::Deadline));
        let timeout = Some((short, Reason::AttemptTimeout));
        assert_eq!(limit(None, None), None);
        assert_eq!(limit(Some(short), None), deadline);
        assert_eq!(limit(Some(short), Some(long)), deadline);
        assert_eq!(limit(Some(short), Some(short)), deadline);
        assert_eq!(limit(None, Some(short)), timeout);
        assert_eq!(limit(Some(long), Some(short)), timeout);
    }
}
