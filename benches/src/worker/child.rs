//! A worker process, as its parent uses it.

use std::{process::Stdio, str::FromStr, time::Duration};

use anyhow::{Context as _, bail, ensure};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::{READY, Role, WORKER};
use crate::database::Kind;

/// The parent waits at most this long for a line.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A running worker. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Child {
    process: tokio::process::Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// Starts a worker, and waits until it is ready.
    pub(crate) async fn start(
        role: Role,
        db: Kind,
        url: &str,
        records: u64,
    ) -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args([WORKER, role.name(), "--db", db.name(), "--url", url])
            .args(["--records", &records.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("a worker")?;
        let stdin = process.stdin.take();
        let stdout = process.stdout.take().context("a worker's output")?;
        let mut child = Self {
            process,
            stdin,
            lines: BufReader::new(stdout).lines(),
        };
        let ready = child.line().await?;
        ensure!(ready == READY, "the first line of a worker was {ready}");
        Ok(child)
    }

    pub(crate) fn id(&self) -> anyhow::Result<u32> {
        self.process.id().context("the worker has ended")
    }

    /// The next line that the worker prints.
    pub(crate) async fn line(&mut self) -> anyhow::Result<String> {
        match timeout(TIMEOUT, self.lines.next_line()).await {
            Ok(line) => line?.context("a worker ended early"),
            Err(_) => bail!("a worker printed no line in {TIMEOUT:?}"),
        }
    }

    /// Ends the worker, and reads the rest of its output.
    pub(crate) async fn end<T>(mut self) -> anyhow::Result<Vec<T>>
    where
        T: FromStr<Err = anyhow::Error>,
    {
        self.stdin = None;
        let mut output = Vec::new();
        while let Some(line) = timeout(TIMEOUT, self.lines.next_line()).await?? {
            output.push(line.parse()?);
        }
        let status = self.process.wait().await?;
        ensure!(status.success(), "a worker failed: {status}");
        Ok(output)
    }
}
