//! A throw-away server if none is given: the program starts itself under `scripts/with-databases`.

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::Context as _;

use crate::{arguments::Arguments, database::Kind};

/// This variable tells the program that it was started by itself.
const STARTED: &str = "OUTBOX_BENCH_STARTED";

/// Starts the program with the servers that are missing, and returns its exit code. Returns `None` if
/// no server is missing.
pub(crate) fn run_with_servers(arguments: &Arguments) -> anyhow::Result<Option<ExitCode>> {
    let needed = |kind: Kind| {
        let is_selected = arguments.databases().contains(&kind) && arguments.needs_database();
        is_selected && arguments.url.is_none() && kind.variable().is_some_and(|name| !is_set(name))
    };
    let none = !Kind::ALL.into_iter().any(needed);
    if none || is_set(STARTED) {
        return Ok(None);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new(root.join("scripts/with-databases"));
    command
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(STARTED, "1");
    for kind in Kind::ALL {
        if let Some(name) = kind.variable()
            && !needed(kind)
            && !is_set(name)
        {
            // The script starts a server for each variable that is not set.
            command.env(name, "not needed");
        }
    }
    let status = command.status().context("scripts/with-databases")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Some(ExitCode::from(code.unwrap_or(1))))
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// The URL of the server; `None` for SQLite, which is a file.
pub(crate) fn url(arguments: &Arguments, kind: Kind) -> anyhow::Result<Option<String>> {
    let Some(name) = kind.variable() else {
        return Ok(None);
    };
    match &arguments.url {
        Some(url) => Ok(Some(url.clone())),
        None => Ok(Some(std::env::var(name).context(name)?)),
    }
}
