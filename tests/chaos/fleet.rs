//! The worker processes, as the chaos program that started them knows them.

use std::{path::PathBuf, process::Stdio, time::Duration};

use anyhow::Context as _;
use tokio::process::{Child, Command};

use crate::{proxy::Proxy, server::Server, signal};

/// The state of a worker process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    Frozen,
    /// The process got `SIGTERM`.
    Leaving,
}

/// One worker process.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) state: State,
    /// `None` for SQLite, which has no server.
    pub(crate) proxy: Option<Proxy>,
    /// The file that its clock follows.
    pub(crate) offset: PathBuf,
    child: Child,
}

impl Worker {
    pub(crate) async fn signal(&self, signal: signal::Signal) -> std::io::Result<()> {
        signal::send(self.pid, signal).await
    }
}

/// All workers. Dropping the fleet kills them.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) workers: Vec<Worker>,
    /// The arguments that all workers have in common.
    arguments: Vec<String>,
    folder: PathBuf,
    names: u32,
    /// The number of workers that ended without `SIGTERM`, or did not end after it.
    pub(crate) unexpected_ends: usize,
}

impl Fleet {
    pub(crate) fn new(arguments: Vec<String>, folder: PathBuf) -> Self {
        Self {
            workers: Vec::new(),
            arguments,
            folder,
            names: 0,
            unexpected_ends: 0,
        }
    }

    /// Starts one more worker, with a new name.
    pub(crate) async fn join(&mut self, server: &Server) -> anyhow::Result<String> {
        self.names += 1;
        let name = format!("w{}", self.names);
        self.spawn(server, name.clone()).await?;
        Ok(name)
    }

    pub(crate) async fn spawn(&mut self, server: &Server, name: String) -> anyhow::Result<()> {
        let proxy = match server.address() {
            Some(address) => Some(Proxy::to(address).await?),
            None => None,
        };
        let url = server.url(proxy.as_ref().map(|proxy| proxy.port));
        let offset = self.folder.join(&name).with_extension("offset");
        let child = Command::new(std::env::current_exe()?)
            .args(["worker", "--name", &name, "--url", &url, "--offset"])
            .arg(&offset)
            .args(&self.arguments)
            // The system closes this pipe when the chaos program ends in any way.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id().context("a process id")?;
        self.workers.push(Worker {
            name,
            pid,
            state: State::Running,
            proxy,
            offset,
            child,
        });
        Ok(())
    }

    /// The positions of the workers in this state.
    pub(crate) fn all(&self, state: State) -> Vec<usize> {
        let of_state = |(at, worker): (usize, &Worker)| (worker.state == state).then_some(at);
        self.workers
            .iter()
            .enumerate()
            .filter_map(of_state)
            .collect()
    }

    pub(crate) fn find(&mut self, pid: u32) -> Option<&mut Worker> {
        self.workers.iter_mut().find(|worker| worker.pid == pid)
    }

    /// Removes a worker and kills it. Another worker may use its name.
    pub(crate) async fn kill(&mut self, at: usize) -> anyhow::Result<String> {
        let mut worker = self.workers.swap_remove(at);
        worker.signal(signal::Signal::Kill).await?;
        worker.child.wait().await?;
        Ok(worker.name)
    }

    /// Removes the workers that have ended.
    pub(crate) fn reap(&mut self) -> anyhow::Result<()> {
        let mut at = 0;
        while let Some(worker) = self.workers.get_mut(at) {
            let Some(status) = worker.child.try_wait()? else {
                at += 1;
                continue;
            };
            if worker.state != State::Leaving || !status.success() {
                eprintln!(
                    "!! {} ({}) ended unexpectedly: {status}",
                    worker.name, worker.pid
                );
                self.unexpected_ends += 1;
            }
            self.workers.swap_remove(at);
        }
        Ok(())
    }

    /// Sends `SIGTERM` to all workers and waits until they have ended.
    pub(crate) async fn stop_all(&mut self, limit: Duration) -> anyhow::Result<()> {
        for worker in &mut self.workers {
            if worker.state != State::Leaving {
                worker.state = State::Leaving;
                worker.signal(signal::Signal::Terminate).await?;
            }
        }
        let end = tokio::time::Instant::now() + limit;
        while !self.workers.is_empty() && tokio::time::Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(50)).await;
            self.reap()?;
        }
        for worker in &self.workers {
            eprintln!(
                "!! {} ({}) did not leave within {limit:?}",
                worker.name, worker.pid
            );
            self.unexpected_ends += 1;
        }
        Ok(())
    }
}
