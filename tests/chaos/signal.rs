//! Signals, sent by the machine's own `kill`: nothing unsafe is needed for that.

use std::io;

/// What a process can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Stop,
    Continue,
    Terminate,
    Quit,
    Kill,
}

/// Sends it to one process.
pub(crate) async fn send(pid: u32, signal: Signal) -> io::Result<()> {
    let name = match signal {
        Signal::Stop => "-STOP",
        Signal::Continue => "-CONT",
        Signal::Terminate => "-TERM",
        Signal::Quit => "-QUIT",
        Signal::Kill => "-KILL",
    };
    let pid = pid.to_string();
    let status = tokio::process::Command::new("kill")
        .args([name, &pid])
        .status()
        .await?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("kill {name} {pid}: {status}"))),
    }
}
