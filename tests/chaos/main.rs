//! Chaos: real worker processes on a real server, which are killed, frozen, cut off and restarted
//! while transactions publish; then a checker says whether every promise was kept.
//!
//! ```sh
//! cargo run --release -p outbox-tests --bin chaos -- --db postgres --seed 7
//! ```
//!
//! The last line on stdout is the verdict; everything else is on stderr. Status 0 means that
//! nothing was lost, reordered or stale, that something was committed, and that each kind of fault
//! was really injected.

mod arguments;

mod commands;
mod database;
mod programs;
mod server;
mod signal;

mod clock;
mod events;
mod handlers;
mod worker;

mod draft;
mod fleet;
mod proxy;
mod publisher;

mod faults;
mod injection;

mod checker;
mod history;
mod verdict;

mod quiet;
mod run;

use std::process::ExitCode;

use arguments::{Arguments, Pairs};
use server::Kind;
use worker::Orders;

#[tokio::main]
async fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let ended = if words.next_if_eq("worker").is_some() {
        work(words).await
    } else {
        chaos(words).await
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("chaos: {error:?}");
            ExitCode::from(2)
        }
    }
}

async fn work(words: impl Iterator<Item = String>) -> anyhow::Result<bool> {
    let (kind, orders) = Orders::read(Pairs::new(words)?)?;
    worker::run(kind, orders).await.map(|()| true)
}

/// Whether every promise was kept.
async fn chaos(words: impl Iterator<Item = String>) -> anyhow::Result<bool> {
    let arguments = Arguments::read(Pairs::new(words)?)?;
    let run = async {
        match arguments.kind {
            Kind::Postgres => run::run::<sqlx::Postgres>(&arguments).await,
            Kind::Mysql => run::run::<sqlx::MySql>(&arguments).await,
            Kind::Sqlite => run::run::<sqlx::Sqlite>(&arguments).await,
        }
    };
    // Dropped, it takes its processes and files with it.
    tokio::select! {
        ended = run => ended,
        _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
    }
}
