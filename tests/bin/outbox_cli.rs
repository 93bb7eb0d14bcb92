//! The program `outbox`, built as a program of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    outbox_cli::main()
}
