//! The times at which handlers started, by the clock of the machine.

use std::{str::FromStr, sync::Arc, time::Duration};

use anyhow::Context as _;
use outbox::{
    State,
    clock::{Clock as _, SystemClock},
    outbox_handler,
};
use tokio::sync::mpsc;

use crate::event::Happened;

/// Microseconds since 1970.
pub(crate) fn now() -> i64 {
    SystemClock.now().as_microsecond()
}

/// The start of one handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) n: u64,
    pub(crate) key: u64,
    /// Microseconds since 1970.
    pub(crate) at: i64,
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.n, self.key, self.at)
    }
}

impl FromStr for Entry {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Self> {
        let mut words = line.split(' ');
        let mut word = || {
            words
                .next()
                .with_context(|| format!("not an entry: {line}"))
        };
        Ok(Self {
            n: word()?.parse()?,
            key: word()?.parse()?,
            at: word()?.parse()?,
        })
    }
}

/// The channel to which handlers send entries.
#[derive(Clone)]
pub(crate) struct Journal(Arc<mpsc::UnboundedSender<Entry>>);

impl Journal {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Entry>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(Arc::new(sender)), receiver)
    }

    fn started(&self, event: &Happened) {
        let (n, key, at) = (event.n, event.key, now());
        // At the end of the worker the receiver is closed.
        let _ = self.0.send(Entry { n, key, at });
    }
}

#[outbox_handler(id = "observe")]
pub(crate) async fn observe(event: Happened, State(journal): State<Journal>) {
    journal.started(&event);
}

/// A handler that takes 5 ms, so that its concurrency limits the rate of a process.
#[outbox_handler(id = "work", concurrency = 32)]
pub(crate) async fn work(event: Happened, State(journal): State<Journal>) {
    journal.started(&event);
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_written_and_read_as_a_line() {
        let entry = Entry {
            n: 7,
            key: 3,
            at: 1_700_000_000_000_000,
        };
        assert_eq!(entry.to_string().parse::<Entry>().unwrap(), entry);
        assert!("7 3".parse::<Entry>().is_err());
    }
}
