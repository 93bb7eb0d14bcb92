//! `cargo run --release -p outbox-bench -- <scenario>`
//!
//! Machines are noisy, so every scenario measures two things in the same run, alternating, and
//! reports the best (or median) of several rounds of each, and their ratio.

mod check_time;
mod dispatch;
mod memory;
mod rounds;

use anyhow::bail;

const USAGE: &str = "usage: outbox-bench <scenario>

scenarios:
  dispatch     one record through one handler in memory, against the same work by hand
  check-time   `cargo check` of a crate with 300 handlers, against the same without attributes
  memory [sqlite|postgres|mysql] [records]
               the peak while a million records drain, against that of a tenth of them
  all          every one of them";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((scenario, arguments)) = arguments.split_first() else {
        bail!("{USAGE}")
    };
    match scenario.as_str() {
        "dispatch" => dispatch::run(),
        "check-time" => check_time::run(),
        "memory" => memory::run(arguments),
        "all" => {
            dispatch::run()?;
            check_time::run()?;
            memory::run(arguments)
        }
        other => bail!("no scenario `{other}`\n{USAGE}"),
    }
}
