//! Other processes: the program starts itself as a worker, which reports on its standard output. It
//! ends when its standard input is closed.

mod child;
mod journal;
pub(crate) mod listen;
mod serve;

use std::io::Read as _;

use clap::{Parser, ValueEnum};
use sqlx::{MySql, Postgres, Sqlite};

pub(crate) use child::Child;
pub(crate) use journal::{Entry, Journal, now, observe};

use crate::database::{Bench, Kind};

/// The first argument of a worker.
pub(crate) const WORKER: &str = "worker";
/// The line that a worker prints when it has started.
const READY: &str = "ready";

#[derive(Debug, Parser)]
pub(crate) struct WorkerArguments {
    #[arg(value_enum)]
    role: Role,
    #[arg(long, value_enum)]
    db: Kind,
    #[arg(long)]
    url: String,
    #[arg(long, default_value_t = 1)]
    records: u64,
}

/// The task of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Delivers, and prints at once when each handler started
    Observe,
    /// Delivers to a handler that takes 5 ms, and prints at the end when each started
    Work,
    /// Drains a backlog, and prints its peak memory
    Drain,
    /// Waits for notifications, and prints when each arrived
    Listen,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Work => "work",
            Self::Drain => "drain",
            Self::Listen => "listen",
        }
    }
}

/// Runs a worker until its end.
pub(crate) async fn run(arguments: &WorkerArguments) -> anyhow::Result<()> {
    if arguments.role == Role::Listen {
        return listen::run(&arguments.url).await;
    }
    match arguments.db {
        Kind::Postgres => deliver::<Postgres>(arguments).await,
        Kind::Mysql => deliver::<MySql>(arguments).await,
        Kind::Sqlite => deliver::<Sqlite>(arguments).await,
    }
}

async fn deliver<Db: Bench>(arguments: &WorkerArguments) -> anyhow::Result<()> {
    match arguments.role {
        Role::Drain => serve::drain::<Db>(&arguments.url, arguments.records).await,
        Role::Observe => serve::observing::<Db>(&arguments.url).await,
        Role::Work | Role::Listen => serve::working::<Db>(&arguments.url).await,
    }
}

/// Waits until the parent closes the standard input or has ended.
async fn until_stdin_closes() -> anyhow::Result<()> {
    let read = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(read).await??;
    Ok(())
}
