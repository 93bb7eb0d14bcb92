//! A line that shows the progress of a long run; on a terminal only.

use std::{
    io::{IsTerminal as _, Write as _},
    sync::Mutex,
};

#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
    /// The current activity.
    doing: Mutex<String>,
}

const WIDTH: u64 = 30;

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            shown: std::io::stderr().is_terminal(),
            doing: Mutex::default(),
        }
    }

    /// Sets the current activity.
    pub(crate) fn doing(&self, activity: impl Into<String>) {
        if let Ok(mut doing) = self.doing.lock() {
            *doing = activity.into();
        }
        self.show("");
    }

    pub(crate) fn at(&self, done: u64, of: u64) {
        let full = (done * WIDTH / of.max(1)).min(WIDTH);
        let bar: String = (0..WIDTH)
            .map(|at| if at < full { '█' } else { '░' })
            .collect();
        self.show(&format!("{bar} {done} of {of}"));
    }

    fn show(&self, state: &str) {
        if self.shown
            && let Ok(doing) = self.doing.lock()
        {
            // A failed write to the terminal must not stop the benchmark.
            let _ = write!(std::io::stderr(), "\r\x1b[2K{doing} {state}");
        }
    }

    /// Removes the line, before other output.
    pub(crate) fn clear(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}
