//! [`Sleeper`]: what waits between attempts, so that a test need not.

use std::{fmt, pin::Pin, time::Duration};

/// Waits between attempts.
///
/// ```
/// use std::{pin::Pin, sync::Mutex, time::Duration};
/// use outbox::transaction::Sleeper;
///
/// /// For tests: does not wait, and remembers.
/// #[derive(Debug, Default)]
/// struct Fake(Mutex<Vec<Duration>>);
///
/// impl Sleeper for Fake {
///     fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
///         self.0.lock().unwrap().push(time);
///         Box::pin(async {})
///     }
/// }
/// ```
pub trait Sleeper: fmt::Debug + Send + Sync {
    /// Ready after that long.
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The runtime's own timer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TokioSleeper;

impl Sleeper for TokioSleeper {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(time))
    }
}
