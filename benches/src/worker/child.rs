//! A worker as its parent sees it.

use std::{process::Stdio, str::FromStr, time::Duration};

use anyhow::{Context as _, bail, ensure};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::{READY, Role, WORKER};
use crate::database::Kind;

/// How long it may say nothing when it is waited for.
const PATIENCE: Duration = Duration::from_secs(600);

/// A running worker. Killed when it is dropped.
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
        ensure!(ready == READY, "a worker began with {ready}");
        Ok(child)
    }

    pub(crate) fn id(&self) -> anyhow::Result<u32> {
        self.process.id().context("the worker has ended")
    }

    /// The next line that it says.
    pub(crate) async fn line(&mut self) -> anyhow::Result<String> {
        match timeout(PATIENCE, self.lines.next_line()).await {
            Ok(line) => line?.context("a worker ended early"),
            Err(_) => bail!("a worker says nothing"),
        }
    }

    /// Ends it, and reads what it had to say.
    pub(crate) async fn end<T>(mut self) -> anyhow::Result<Vec<T>>
    where
        T: FromStr<Err = anyhow::Error>,
    {
        self.stdin = None;
        let mut said = Vec::new();
        while let Some(line) = timeout(PATIENCE, self.lines.next_line()).await?? {
            said.push(line.parse()?);
        }
        let status = self.process.wait().await?;
        ensure!(status.success(), "a worker failed: {status}");
        Ok(said)
    }
}
