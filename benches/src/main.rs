//! `cargo run --release -p outbox-bench -- <scenario> --db postgres|mysql|sqlite`
//!
//! Machines are noisy, so every scenario measures two things in turns, in the same run, and compares
//! the best of several rounds of each. The program checks which records each run delivered: a fast
//! wrong run is a failure.
//!
//! # Layout
//!
//! - **arguments** parses the command line; **server** starts a throw-away server if none is given.
//! - **scenario** has one file per scenario. Each runs on a **site**: a database that has only the
//!   outbox's tables.
//! - **backlog** fills the table, **ours** drains it with the library, **floor** without it.
//! - **`by_hand`** publishes without the library; **worker** is the program in another process;
//!   **statements** counts the statements that a worker sends to its database.
//! - **event** is the published event; **tally** checks the delivered events; **usage** reads the
//!   costs from the server.
//! - **verdict** is a figure with its reference and goal; **results** has all figures and failures of
//!   a run; **table**, **report** and **charts** show them.

mod arguments;
mod backlog;
mod by_hand;
mod charts;
mod database;
mod event;
mod floor;
mod json;
mod ours;
mod progress;
mod report;
mod results;
mod rounds;
mod scenario;
mod server;
mod site;
mod statements;
mod table;
mod tally;
mod usage;
mod verdict;
mod worker;

use std::process::ExitCode;

use arguments::Arguments;
use clap::Parser as _;

fn main() -> anyhow::Result<ExitCode> {
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).is_some_and(|word| word == worker::WORKER) {
        let arguments = worker::WorkerArguments::parse_from(words.into_iter().skip(1));
        runtime()?.block_on(worker::run(&arguments))?;
        return Ok(ExitCode::SUCCESS);
    }
    let arguments = Arguments::read();
    if let Some(code) = server::run_with_servers(&arguments)? {
        return Ok(code);
    }
    println!("{}", table::Header);
    let results = runtime()?.block_on(scenario::run(&arguments));
    println!();
    if let Some(file) = &arguments.report {
        let before = std::fs::read_to_string(file).unwrap_or_default();
        std::fs::write(
            file,
            report::page(&results, &report::Machine::read(), &before),
        )?;
        println!("the report is in {}\n", file.display());
    }
    if let Some(file) = &arguments.charts {
        std::fs::write(file, charts::page(&results.verdicts))?;
        println!("the charts are in {}\n", file.display());
    }
    if arguments.json {
        for verdict in &results.verdicts {
            println!("{}", json::line(verdict)?);
        }
    }
    if !results.failures.is_empty() {
        eprintln!("{} failed:", results.failures.len());
    }
    for failure in &results.failures {
        eprintln!("  {failure}");
    }
    let missed = results.verdicts.iter().any(verdict::Verdict::missed);
    if !results.failures.is_empty() || (arguments.strict && missed) {
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}
