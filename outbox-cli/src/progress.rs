//! [`Progress`]: how far a long change has come, on a terminal.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use crate::words::{count, span};

/// One line that is written again and again; nothing where nobody looks.
#[derive(Debug)]
pub(crate) struct Progress {
    verb: &'static str,
    total: Option<u64>,
    began: Instant,
    last: Option<Instant>,
    shown: bool,
}

impl Progress {
    /// Whether there is a terminal to show it on.
    pub(crate) fn is_seen() -> bool {
        io::stderr().is_terminal()
    }

    pub(crate) fn new(verb: &'static str, total: Option<u64>) -> Self {
        Self {
            verb,
            total,
            began: Instant::now(),
            last: None,
            shown: Self::is_seen(),
        }
    }

    /// So much is done.
    pub(crate) fn show(&mut self, done: u64) {
        let often = Duration::from_millis(100);
        if !self.shown || self.last.is_some_and(|last| last.elapsed() < often) {
            return;
        }
        self.last = Some(Instant::now());
        let line = line(self.verb, done, self.total, self.began.elapsed());
        // A line that cannot be shown is not worth a failure.
        let _ = write!(io::stderr(), "\r{line}\u{1b}[K");
    }

    /// Wipes the line.
    pub(crate) fn end(&self) {
        if self.last.is_some() {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

fn line(verb: &str, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{verb} {}", count(done));
    };
    let percent = done.saturating_mul(100) / total;
    let left = u128::from(total.saturating_sub(done));
    let left = elapsed.as_millis() * left / u128::from(done.max(1));
    let left = span(Duration::from_secs(
        u64::try_from(left / 1000).unwrap_or(u64::MAX),
    ));
    format!(
        "{verb} {} of {} ({percent} %), about {left} left",
        count(done),
        count(total)
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
