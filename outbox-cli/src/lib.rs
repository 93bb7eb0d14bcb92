//! The program `outbox`: a person on call inspects and changes an outbox with it, on any of the
//! databases. The program uses the public interface of the crate `outbox` only. It runs no handlers.
//!
//! `arguments` is the command line. `connection` opens the tables. `commands` has one file for each
//! command. `failure` turns errors into one line and an exit code. The other files are shared by
//! several commands.
//!
//! The program is a library with one function, so that the tests, in another package, can build it.

mod arguments;
mod batches;
mod commands;
mod connection;
mod failure;
mod filter;
mod interrupt;
mod output;
mod progress;
mod snapshot;
mod table;
mod text;

use std::process::ExitCode;

use clap::Parser as _;
use outbox::Database;
use sqlx::{MySql, Postgres, Sqlite};

use arguments::{Arguments, Command};
use commands::{
    change, change::Verb, completions, instances, lanes, list, migrate, pause, policy, prune, show,
    status, watch,
};
use failure::{Exit, Failure, Result};
use output::Output;

/// Parses the command line, runs the command and returns its exit code.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    failure::hide(arguments.connection.passwords());
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(run(&arguments)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

async fn run(arguments: &Arguments) -> Result {
    let output = Output::new(arguments.json);
    match &arguments.command {
        Command::Policy(policy) => return policy::run(policy, output),
        Command::Completions(shell) => return completions::run(shell, output),
        _ => {}
    }
    let url = arguments.connection.url()?;
    match url.split(':').next() {
        Some("postgres" | "postgresql") => run_on::<Postgres>(&url, arguments, output).await,
        Some("mysql" | "mariadb") => run_on::<MySql>(&url, arguments, output).await,
        Some("sqlite") => run_on::<Sqlite>(&url, arguments, output).await,
        // The message does not quote the URL: it may contain a password.
        _ => Err(Failure::new(
            Exit::Usage,
            "the database URL must start with postgres://, mysql:// or sqlite://",
        )),
    }
}

async fn run_on<Db: Database>(url: &str, arguments: &Arguments, output: Output) -> Result {
    let connection = &arguments.connection;
    if let Command::Migrate(migrate) = &arguments.command {
        let tables = connection.tables::<Db>(url, !migrate.print).await?;
        return migrate::run(&tables, migrate, output).await;
    }
    let tables = connection.tables::<Db>(url, true).await?;
    connection::check_version(&tables).await?;
    let operations = tables.operations();
    match &arguments.command {
        Command::Status(status) => status::run(operations, status, output).await,
        Command::Watch(watch) => watch::run(operations, watch, output).await,
        Command::List(list) => list::run(operations, list, output).await,
        Command::Show(show) => show::run(operations, show, output).await,
        Command::Replay(change) => change::run(operations, Verb::Replay, change, output).await,
        Command::Discard(change) => change::run(operations, Verb::Discard, change, output).await,
        Command::Lanes(lanes) => lanes::run(operations, lanes, output).await,
        Command::Instances => instances::run(operations, output).await,
        Command::Pause(handler) => pause::pause(operations, handler, output).await,
        Command::Resume(handler) => pause::resume(operations, handler, output).await,
        Command::Prune(prune) => prune::run(operations, prune, output).await,
        // These ran before the program connected.
        Command::Migrate(_) | Command::Policy(_) | Command::Completions(_) => Ok(()),
    }
}
