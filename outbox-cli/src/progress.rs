//! [`Progress`]: the progress of a long change, on a terminal.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use crate::text::{duration, number};

/// One line that is overwritten. Without a terminal it prints nothing.
#[derive(Debug)]
pub(crate) struct Progress {
    verb: &'static str,
    total: Option<u64>,
    started: Instant,
    last_shown: Option<Instant>,
}

impl Progress {
    /// Whether there is a terminal to show the progress on.
    pub(crate) fn is_visible() -> bool {
        io::stderr().is_terminal()
    }

    pub(crate) fn new(verb: &'static str, total: Option<u64>) -> Self {
        Self {
            verb,
            total,
            started: Instant::now(),
            last_shown: None,
        }
    }

    /// Shows the number of changed records, at most ten times a second.
    pub(crate) fn show(&mut self, done: u64) {
        let is_recent = |last: Instant| last.elapsed() < Duration::from_millis(100);
        if !Self::is_visible() || self.last_shown.is_some_and(is_recent) {
            return;
        }
        self.last_shown = Some(Instant::now());
        let line = line(self.verb, done, self.total, self.started.elapsed());
        // A line that cannot be shown is not worth a failure.
        let _ = write!(io::stderr(), "\r{line}\u{1b}[K");
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        if self.last_shown.is_some() {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

/// Assumes that the rest is as fast as the part that is done.
fn line(verb: &str, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{verb} {}", number(done));
    };
    let percent = done.saturating_mul(100) / total;
    let rest = u128::from(total.saturating_sub(done));
    let seconds = elapsed.as_millis() * rest / u128::from(done.max(1)) / 1000;
    let left = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
    format!(
        "{verb} {} of {} ({percent} %), about {} left",
        number(done),
        number(total),
        duration(left)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_is_done_did() {
        let text = line("replayed", 250, Some(1000), Duration::from_secs(10));
        assert_eq!(text, "replayed 250 of 1,000 (25 %), about 30s left");
        assert_eq!(line("deleted", 7, None, Duration::ZERO), "deleted 7");
        assert_eq!(line("replayed", 0, Some(0), Duration::ZERO), "replayed 0");
    }
}
