//! `cargo run --release -p outbox-bench -- <scenario> --db postgres|mysql|sqlite`
//!
//! Machines are noisy, so every scenario measures two things in the same run, alternating, and
//! compares the best of several rounds of each. What a run delivered is checked: a fast wrong run is
//! a failure.
//!
//! # Layout
//!
//! - **arguments**: what the program is told; **server**: a throw-away server, where none is given.
//! - **scenario**: one file for each, on a **site**: a database with the outbox's tables and nothing
//!   else in it.
//! - **backlog** fills the table, **ours** drains it with the library, **floor** without it.
//! - **`by_hand`** publishes without the library; **worker** is the program in another process, and
//!   **statements** counts what one asks its database.
//! - **event** is what is published; **tally** checks what was delivered; **usage** is what it cost
//!   the server.
//! - **verdict** is a figure beside its goal; **table** and **report** show them.

mod arguments;
mod backlog;
mod by_hand;
mod database;
mod event;
mod floor;
mod json;
mod ours;
mod progress;
mod report;
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
        let orders = worker::Orders::parse_from(words.into_iter().skip(1));
        runtime()?.block_on(worker::run(&orders))?;
        return Ok(ExitCode::SUCCESS);
    }
    let arguments = Arguments::read();
    if let Some(code) = server::run_with_servers(&arguments)? {
        return Ok(code);
    }
    let verdicts = runtime()?.block_on(scenario::run(&arguments))?;
    println!("\n{}", table::Table(&verdicts));
    if let Some(file) = &arguments.report {
        std::fs::write(file, report::page(&verdicts))?;
        println!("the report is in {}\n", file.display());
    }
    if arguments.json {
        for verdict in &verdicts {
            println!("{}", json::line(verdict)?);
        }
    }
    let missed = verdicts.iter().any(verdict::Verdict::missed);
    Ok(match arguments.strict && missed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}
