//! The history of a run, written outside of the system under test. Each fact is one line and one
//! write, so a killed process loses at most the line that it was about to write.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use outbox::clock::{Clock as _, SystemClock};
use serde::{Deserialize, Serialize};

/// Nanoseconds since 1970, by the clock of the machine.
pub(crate) type Nanos = i64;

/// One of the two handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Handler {
    /// The handler that writes to the history only.
    Plain,
    /// The handler that also writes a row in the transaction of its record.
    Tx,
}

/// One invocation of a handler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Invocation {
    pub(crate) at: Nanos,
    pub(crate) worker: String,
    pub(crate) pid: u32,
    pub(crate) handler: Handler,
    pub(crate) key: String,
    pub(crate) number: i64,
    pub(crate) event: i64,
    pub(crate) attempt: u32,
}

/// How an invocation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    Ok,
    Failed,
    /// The handler panicked, or the dispatcher dropped its future.
    Dropped,
}

/// An event that a committed transaction has published, by the publishers' table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) event: i64,
    pub(crate) tx: i64,
    pub(crate) key: String,
    pub(crate) number: i64,
    pub(crate) handler: Handler,
    pub(crate) dedup: Option<String>,
}

/// A fault of one process; of all processes if there is no pid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fault {
    pub(crate) kind: String,
    pub(crate) pid: Option<u32>,
    pub(crate) from: Nanos,
    pub(crate) until: Nanos,
}

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub(crate) enum Fact {
    /// An invocation started.
    Start(Invocation),
    /// An invocation ended; `at` is the time of its end.
    End {
        invocation: Invocation,
        end: End,
    },
    /// The database acknowledged the commit of a transaction that published `events` events.
    Acknowledged {
        at: Nanos,
        tx: i64,
        events: usize,
    },
    /// The outbox reported this dedup key as a duplicate.
    Duplicate {
        at: Nanos,
        dedup: String,
    },
    Fault(Fault),
    /// A row of the publishers' table, read at the end of the run.
    Sent(Sent),
    /// A row of a handler's transaction, read at the end of the run. Ids grow in the order of the
    /// inserts.
    Effect {
        id: i64,
        event: i64,
        key: String,
    },
}

/// The time for the history. It does not come from the clock of the outbox, which may be wrong.
pub(crate) fn now() -> Nanos {
    i64::try_from(SystemClock.now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// The history file of one process.
#[derive(Debug)]
pub(crate) struct History(File);

impl History {
    pub(crate) fn open(folder: &Path, process: &str) -> io::Result<Self> {
        let path = folder.join(process).with_extension("jsonl");
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map(Self)
    }

    /// Writes one line. If that fails, the run cannot be judged, so the process aborts.
    pub(crate) fn write(&self, fact: &Fact) {
        let encoded = serde_json::to_vec(fact).map_err(io::Error::from);
        let written = encoded.and_then(|mut line| {
            line.push(b'\n');
            (&self.0).write_all(&line)
        });
        if let Err(error) = written {
            eprintln!("chaos: the history cannot be written: {error}");
            std::process::abort();
        }
    }
}

/// All facts of all processes, file by file. It skips a line that a kill has cut off.
pub(crate) fn read(folder: &Path) -> io::Result<Vec<Fact>> {
    let mut facts = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "jsonl") {
            let text = std::fs::read_to_string(path)?;
            facts.extend(
                text.lines()
                    .filter_map(|line| serde_json::from_str(line).ok()),
            );
        }
    }
    Ok(facts)
}
