//! Other processes: the program starts itself as a worker, which reports on its standard output and
//! ends when its standard input does.

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
/// What it says when it has started.
const READY: &str = "ready";

#[derive(Debug, Parser)]
pub(crate) struct Orders {
    #[arg(value_enum)]
    role: Role,
    #[arg(long, value_enum)]
    db: Kind,
    #[arg(long)]
    url: String,
    #[arg(long, default_value_t = 1)]
    records: u64,
}

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Delivers, and says at once when each handler started
    Observe,
    /// Delivers to a handler that takes five milliseconds, and says at the end when each started
    Work,
    /// Drains a backlog, and says how much memory that took
    Drain,
    /// Waits for notifications, and says when each arrived
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

/// The whole life of a worker.
pub(crate) async fn run(orders: &Orders) -> anyhow::Result<()> {
    if orders.role == Role::Listen {
        return listen::run(&orders.url).await;
    }
    match orders.db {
        Kind::Postgres => deliver::<Postgres>(orders).await,
        Kind::Mysql => deliver::<MySql>(orders).await,
        Kind::Sqlite => deliver::<Sqlite>(orders).await,
    }
}

async fn deliver<Db: Bench>(orders: &Orders) -> anyhow::Result<()> {
    match orders.role {
        Role::Drain => serve::drain::<Db>(&orders.url, orders.records).await,
        Role::Observe => serve::observing::<Db>(&orders.url).await,
        Role::Work | Role::Listen => serve::working::<Db>(&orders.url).await,
    }
}

/// Until the parent closes the standard input, or has died.
async fn until_told_to_end() -> anyhow::Result<()> {
    let read = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(read).await??;
    Ok(())
}
