//! What happened, written outside of the system under test: one line per fact, by one write each,
//! so that a process that is killed loses at most the line it was about to write.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use outbox::clock::{Clock as _, SystemClock};
use serde::{Deserialize, Serialize};

/// Nanoseconds since 1970, by the clock that all processes of this machine share.
pub(crate) type Nanos = i64;

/// Which of the two handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Handler {
    /// Writes to the history only.
    Plain,
    /// Writes a row in its record's own transaction.
    Tx,
}

/// One invocation of a handler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Visit {
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
    /// By a panic, or because whoever ran it dropped it.
    Dropped,
}

/// An event that a committed transaction says it has published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) event: i64,
    pub(crate) tx: i64,
    pub(crate) key: String,
    pub(crate) number: i64,
    pub(crate) handler: Handler,
    pub(crate) dedup: Option<String>,
}

/// Something done to a process; to all of them if there is no pid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fault {
    pub(crate) kind: String,
    pub(crate) pid: Option<u32>,
    pub(crate) from: Nanos,
    pub(crate) until: Nanos,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub(crate) enum Fact {
    /// A handler began.
    Start(Visit),
    /// It ended; its `at` is the time of that.
    End {
        visit: Visit,
        end: End,
    },
    /// The database said that this transaction is committed, in which so many events were sent.
    Acknowledged {
        at: Nanos,
        tx: i64,
        events: usize,
    },
    /// The outbox said that it has this dedup key already.
    Duplicate {
        at: Nanos,
        dedup: String,
    },
    Fault(Fault),
    /// Found in the publishers' own table at the end.
    Sent(Sent),
    /// A row of a handler's transaction, found at the end. Ids grow in the order of writing.
    Effect {
        id: i64,
        event: i64,
        key: String,
    },
}

/// What time it is for the history. Not the clock that is given to the outbox, which lies.
pub(crate) fn now() -> Nanos {
    i64::try_from(SystemClock.now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// The file of one process.
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

    /// A history that cannot be written makes the run worthless: the process ends.
    pub(crate) fn write(&self, fact: &Fact) {
        let written = serde_json::to_vec(fact).map_err(io::Error::from);
        let written = written.and_then(|mut line| {
            line.push(b'\n');
            (&self.0).write_all(&line)
        });
        if let Err(error) = written {
            eprintln!("chaos: the history cannot be written: {error}");
            std::process::abort();
        }
    }
}

/// All facts of all processes, file by file. A line that a kill has cut off is left out.
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
