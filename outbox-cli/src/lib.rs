//! The program `outbox`: a person on call inspects and changes an outbox with it, on any of the
//! databases. The program uses the public interface of the crate `outbox` only. It runs no handlers.
//!
//! `arguments` is the command line. `connection` opens the tables. `session` holds the tables and the
//! output. `commands` has one file for each command. `failure` turns errors into one line and an exit
//! code. The other files are shared by several commands.
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
mod session;
mod snapshot;
mod table;
mod text;

use std::process::ExitCode;

use clap::Parser as _;
use outbox::Database;
use sqlx::{MySql, Postgres, Sqlite};

use arguments::{Arguments, Command};
use commands::{
    change::{DISCARD, REPLAY},
    completions, policy,
};
use failure::{Exit, Failure, Result};
use output::Output;
use session::Session;

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
    let needs_no_database =
        matches!(&arguments.command, Command::Migrate(migrate) if migrate.print);
    let connection = &arguments.connection;
    let tables = connection.tables::<Db>(url, !needs_no_database).await?;
    let session = Session {
        tables: &tables,
        operations: tables.operations(),
        output,
    };
    match &arguments.command {
        Command::Status(status) => session.status(status).await,
        Command::Watch(watch) => session.watch(watch).await,
        Command::List(list) => session.list(list).await,
        Command::Show(show) => session.show(show).await,
        Command::Replay(change) => session.change(REPLAY, change).await,
        Command::Discard(change) => session.change(DISCARD, change).await,
        Command::Lanes(lanes) => session.lanes(lanes).await,
        Command::Instances => session.instances().await,
        Command::Pause(handler) => session.set_paused(handler, true).await,
        Command::Resume(handler) => session.set_paused(handler, false).await,
        Command::Prune(prune) => session.prune(prune).await,
        Command::Restore(restore) => session.restore(restore).await,
        Command::Migrate(migrate) => session.migrate(migrate).await,
        // These ran before the program connected.
        Command::Policy(_) | Command::Completions(_) => Ok(()),
    }
}
