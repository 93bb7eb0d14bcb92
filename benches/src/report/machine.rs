//! [`Machine`]: the machine, compiler and commit of the measurements.

use std::{fs, process::Command};

/// Each field is a text; it is empty if it cannot be determined.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    pub(super) date: String,
    pub(super) commit: String,
    pub(super) compiler: String,
    pub(super) hardware: String,
}

impl Machine {
    /// Reads them from the operating system, git and the compiler.
    pub(crate) fn read() -> Self {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let gigabytes = field("/proc/meminfo", "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
            .map_or(0, |kilobytes| kilobytes.div_ceil(1024 * 1024));
        let model = field("/proc/cpuinfo", "model name").unwrap_or_default();
        Self {
            date: answer("date", &["-u", "+%Y-%m-%d"]),
            commit: answer("git", &["describe", "--always", "--dirty"]),
            compiler: answer("rustc", &["--version"]),
            hardware: format!("{cores} processors ({model}), {gigabytes} GB of memory"),
        }
    }
}

fn answer(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.output().map(|output| output.stdout);
    let text = String::from_utf8(output.unwrap_or_default()).unwrap_or_default();
    text.trim().to_owned()
}

/// The first value of this name in a file of `name : value` lines.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
