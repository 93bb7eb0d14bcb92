//! [`run`]: a change of many records, one short transaction after the other.

use std::io::{self, IsTerminal as _};

use serde_json::json;

use crate::{
    failure::{Exit, Failure, Result},
    interrupt::Interrupt,
    output::Output,
    progress::Progress,
    text::counted,
};

const CONTINUE: &str = "run the same command to continue";

/// What the command does, in the past tense, and to what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) done: &'static str,
    pub(crate) noun: &'static str,
    /// How many there are, if somebody watches the progress.
    pub(crate) total: Option<u64>,
}

/// Runs batches until `next` returns `None` or a signal arrives, and prints how many records changed.
/// After a signal, `left` tells how many records remain, if the command knows.
pub(crate) async fn run(
    task: Task,
    output: Output,
    mut next: impl AsyncFnMut() -> outbox::Result<Option<u64>>,
    left: impl AsyncFnOnce() -> Result<String>,
) -> Result {
    let interrupt = Interrupt::listen(announce)?;
    let mut progress = Progress::new(task.done, task.total);
    let mut changed = 0;
    let text = |changed| format!("{} {}", task.done, counted(changed, task.noun));
    let interrupted = loop {
        if interrupt.is_set() {
            break true;
        }
        match next().await {
            Ok(Some(more)) => changed += more,
            Ok(None) => break false,
            Err(error) => {
                progress.clear();
                let done = format!("{} before the error; {CONTINUE}", text(changed));
                return Err(Failure::from(error).after(&done));
            }
        }
        progress.show(changed);
    };
    progress.clear();
    let object = json!({ "changed": changed, "interrupted": interrupted });
    output.print(&object, text(changed))?;
    if !interrupted {
        return Ok(());
    }
    let line = format!(
        "interrupted: {}{}; {CONTINUE}",
        text(changed),
        left().await?
    );
    Err(Failure::new(Exit::Interrupted, line))
}

fn announce() {
    if io::stderr().is_terminal() {
        eprintln!("\nfinishing the current batch; press Ctrl-C again to stop at once");
    }
}
