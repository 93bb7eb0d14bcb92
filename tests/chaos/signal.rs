//! Sends signals with the program `kill`, which needs no `unsafe` code.

use std::io;

/// A signal to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Stop,
    Continue,
    Terminate,
    Quit,
    Kill,
}

/// Sends a signal to one process.
pub(crate) async fn send(pid: u32, signal: Signal) -> io::Result<()> {
    let name = match signal {
        Signal::Stop => "-STOP",
        Signal::Continue => "-CONT",
        Signal::Terminate => "-TERM",
        Signal::Quit => "-QUIT",
        Signal::Kill => "-KILL",
    };
    let pid_text = pid.to_string();
    let status = tokio::process::Command::new("kill")
        .args([name, &pid_text])
        .status()
        .await?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("kill {name} {pid}: {status}")))
    }
}
