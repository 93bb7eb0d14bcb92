//! The peers from npm: each is a script in `node/`, which gets the case as JSON and prints its result
//! as JSON.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;

use crate::case::{Case, Mode, Outcome, Peer};

pub(crate) const GRAPHILE_WORKER: Peer = Peer {
    name: "graphile-worker",
    package: "graphile-worker",
    language: "javascript",
    modes: Mode::BOTH,
    run: |case| Box::pin(run("graphile-worker.js", case)),
};

pub(crate) const PG_BOSS: Peer = Peer {
    name: "pg-boss",
    package: "pg-boss",
    language: "javascript",
    modes: Mode::BOTH,
    run: |case| Box::pin(run("pg-boss.js", case)),
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/node");
/// The peers need a newer Node.js than Debian has, so npm installs one.
const NODE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/node/node_modules/.bin/node");

#[derive(Deserialize)]
struct Answer {
    error: Option<String>,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    again: usize,
    #[serde(default)]
    note: String,
}

async fn run(script: &str, case: Case) -> Result<Outcome> {
    install().await?;
    let described = json!({
        "url": case.url,
        "ordered": case.is_ordered(),
        "records": case.records,
        "keys": case.keys,
    });
    let output = Command::new(NODE)
        .args([script, &described.to_string()])
        .current_dir(FOLDER)
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .context("node")?;
    ensure!(output.status.success(), "node {script}: {}", output.status);
    let answer: Answer = serde_json::from_slice(&output.stdout).context("node's answer")?;
    if let Some(error) = answer.error {
        bail!(error);
    }
    let took = Duration::try_from_secs_f64(answer.seconds)?;
    Ok(Outcome {
        took,
        again: answer.again,
        note: answer.note,
    })
}

async fn install() -> Result<()> {
    if Path::new(NODE).exists() {
        return Ok(());
    }
    let status = Command::new("npm")
        .args(["ci", "--no-audit", "--no-fund"])
        .current_dir(FOLDER)
        .stdout(Stdio::null())
        .status()
        .await
        .context("npm")?;
    ensure!(status.success(), "npm ci: {status}");
    Ok(())
}
