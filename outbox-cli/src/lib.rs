//! The program `outbox`: what a person on call looks at and changes, on any of the three databases.
//! It needs none of the handlers.
//!
//! `arguments` is what can be said, `target` where it is done, `failure` how it ends when it ends
//! badly. Every other file is a command, or a part that commands share.

mod arguments;
mod completions;
mod failure;
mod help;
mod instances;
mod interrupt;
mod lanes;
mod list;
mod many;
mod migrate;
mod one;
mod output;
mod pause;
mod policy;
mod progress;
mod prune;
mod select;
mod shape;
mod show;
mod status;
mod table;
mod target;
mod watch;
mod words;

use std::process::ExitCode;

use clap::Parser as _;
use outbox::{Database, operations::Tables};

use arguments::{Arguments, Command};
use failure::Failure;
use output::Output;
use target::Target;

/// Parses the command line, runs the command and returns its exit code.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    failure::keep_secret(target::secrets(&arguments.target));
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

async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let output = Output::new(arguments.json);
    match &arguments.command {
        Command::Policy(policy) => return policy::run(policy, output),
        Command::Completions(shell) => return completions::run(shell, output),
        _ => {}
    }
    // What is only printed needs no server.
    let connects = !matches!(&arguments.command, Command::Migrate(migrate) if migrate.print);
    match target::open(&arguments.target, connects).await? {
        Target::Postgres(tables) => on(&tables, arguments, output).await,
        Target::MySql(tables) => on(&tables, arguments, output).await,
        Target::Sqlite(tables) => on(&tables, arguments, output).await,
    }
}

async fn on<Db: Database>(
    tables: &Tables<Db>,
    arguments: &Arguments,
    output: Output,
) -> Result<(), Failure> {
    if !matches!(arguments.command, Command::Migrate(_)) {
        target::check_version(tables).await?;
    }
    let operations = tables.operations();
    match &arguments.command {
        Command::Status(status) => status::run(operations, status, output).await,
        Command::Watch(watch) => watch::run(operations, watch, output).await,
        Command::List(list) => list::run(operations, list, output).await,
        Command::Show(show) => show::run(operations, show, output).await,
        Command::Replay(change) => many::run(operations, many::Verb::Replay, change, output).await,
        Command::Discard(change) => {
            many::run(operations, many::Verb::Discard, change, output).await
        }
        Command::Lanes(lanes) => lanes::run(operations, lanes, output).await,
        Command::Instances => instances::run(operations, output).await,
        Command::Pause(pause) => pause::pause(operations, pause, output).await,
        Command::Resume(pause) => pause::resume(operations, pause, output).await,
        Command::Prune(prune) => prune::run(operations, prune, output).await,
        Command::Migrate(migrate) => migrate::run(tables, migrate, output).await,
        // They need no database, and are done by now.
        Command::Policy(_) | Command::Completions(_) => Ok(()),
    }
}
