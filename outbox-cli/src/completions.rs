//! `outbox completions`.

use clap::CommandFactory as _;

use crate::{
    arguments::{Arguments, CompletionArguments},
    failure::Failure,
    output::Output,
};

pub(crate) fn run(arguments: &CompletionArguments, output: Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "outbox", &mut script);
    output.line(String::from_utf8_lossy(&script).trim_end())
}
