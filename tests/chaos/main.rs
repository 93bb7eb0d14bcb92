//! Chaos: the program runs real worker processes on a real server. It kills, freezes and cuts off
//! workers and restarts the server, while transactions publish. Then a checker decides whether the
//! library kept every promise.
//!
//! ```sh
//! cargo run --release -p outbox-tests --bin chaos -- --db postgres --seed 7
//! ```
//!
//! The last line on stdout is the verdict; all other lines are on stderr. Status 0 means that no
//! event was lost, reordered or stale, that at least one was committed, and that each kind of fault
//! was injected.

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

mod drain;
mod run;

use std::process::ExitCode;

use arguments::{Arguments, Pairs};
use server::Kind;
use worker::WorkerArguments;

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
    let (kind, arguments) = WorkerArguments::read(Pairs::new(words)?)?;
    worker::run(kind, arguments).await.map(|()| true)
}

/// Returns whether the library kept every promise.
async fn chaos(words: impl Iterator<Item = String>) -> anyhow::Result<bool> {
    let arguments = Arguments::read(Pairs::new(words)?)?;
    let run = async {
        match arguments.kind {
            Kind::Postgres => run::run::<sqlx::Postgres>(&arguments).await,
            Kind::Mysql => run::run::<sqlx::MySql>(&arguments).await,
            Kind::Sqlite => run::run::<sqlx::Sqlite>(&arguments).await,
        }
    };
    // Dropping the run ends its processes and removes its files.
    tokio::select! {
        ended = run => ended,
        _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
    }
}
