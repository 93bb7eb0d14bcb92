//! `outbox completions`.

use clap::{Args, CommandFactory as _};

use crate::{arguments::Arguments, failure::Result, output::Output};

#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    shell: clap_complete::Shell,
}

pub(crate) fn run(arguments: &CompletionArguments, output: Output) -> Result {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "outbox", &mut script);
    output.line(String::from_utf8_lossy(&script).trim_end())
}
