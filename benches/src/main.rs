//! `cargo run --release -p outbox-bench -- <scenario>`
//!
//! Machines are noisy, so every scenario measures two things in the same run, alternating, and
//! reports the best (or median) of several rounds of each, and their ratio.

mod check_time;
mod dispatch;
mod rounds;

use anyhow::bail;

const USAGE: &str = "usage: outbox-bench <scenario>

scenarios:
  dispatch     one record through one handler in memory, against the same work by hand
  check-time   `cargo check` of a crate with 300 handlers, against the same without attributes
  all          every one of them";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scenario = match &*arguments {
        [scenario] => scenario.as_str(),
        _ => bail!("{USAGE}"),
    };
    match scenario {
        "dispatch" => dispatch::run(),
        "check-time" => check_time::run(),
        "all" => {
            dispatch::run()?;
            check_time::run()
        }
        other => bail!("no scenario `{other}`\n{USAGE}"),
    }
}
