//! `peers`: other libraries on the same server, measured by the program in `benches/peers`. Our
//! ordered `drain` is compared with libraries without an order and with libraries that keep one.

use std::{
    path::Path,
    process::{Output, Stdio},
};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;

use crate::{
    backlog::{self, KEYS},
    database::{Bench, Kind},
    ours,
    rounds::best,
    server,
    site::Site,
    verdict::Verdict,
};

const RECORDS: u64 = 50_000;
/// The number of records for libraries that keep an order. They are slow, and their rates do not
/// depend on it.
const ORDERED: u64 = 10_000;
const ROUNDS: usize = 3;

/// A line of the program of the peers.
#[derive(Debug, Clone, Deserialize)]
struct Peer {
    peer: String,
    version: String,
    mode: String,
    rate: Option<f64>,
    ok: bool,
    /// Its settings, or why it has no rate.
    note: String,
}

pub(crate) async fn run<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/Cargo.toml");
    if Db::KIND != Kind::Postgres {
        let reason = "the peers are compared on PostgreSQL";
        return Ok(vec![Verdict::skipped("peers", Db::KIND, reason)]);
    }
    if !manifest.exists() {
        let reason = "benches/peers does not exist";
        return Ok(vec![Verdict::skipped("peers", Db::KIND, reason)]);
    }
    let records = site.arguments.records(RECORDS);
    let mut runs = Vec::new();
    for _ in 0..site.arguments.rounds(ROUNDS) {
        backlog::write(site, records, KEYS).await?;
        runs.push(ours::drain(site, records, KEYS, false).await?);
    }
    let ours = best(&runs)?.rate();
    site.progress.doing("peers");
    let url = server::url(&site.arguments, Db::KIND)?.context("no server")?;
    let peers = peers(&manifest, &url, records).await?;
    let verdict = |mode: &str, times: f64| {
        let of_mode = peers.iter().filter(|peer| peer.mode == mode && peer.ok);
        let rated = of_mode.filter_map(|peer| Some((peer.rate?, peer)));
        let Some((rate, fastest)) = rated.max_by(|a, b| a.0.total_cmp(&b.0)) else {
            let reason = "no peer of this kind could be measured";
            return Verdict::skipped(format!("peers/{mode}"), Db::KIND, reason);
        };
        let pair = (ours, rate);
        let name = format!("peers/{mode}");
        Verdict::more_is_better(name, Some(Db::KIND), "records/s", pair, times)
            .with("records", records)
            .with("fastest", format!("{} {}", fastest.peer, fastest.version))
            .with("all", all(&peers, mode))
            .with("failed", failed(&peers, mode))
    };
    Ok(vec![verdict("unordered", 4.0), verdict("ordered", 100.0)])
}

fn all(peers: &[Peer], mode: &str) -> serde_json::Value {
    let of_mode = peers.iter().filter(|peer| peer.mode == mode);
    of_mode
        .map(|peer| (peer.peer.clone(), json!(peer.rate)))
        .collect()
}

/// The peers without a rate, with the reason.
fn failed(peers: &[Peer], mode: &str) -> String {
    let failed = peers.iter().filter(|peer| peer.mode == mode && !peer.ok);
    let reasons: Vec<String> = failed
        .map(|peer| format!("{} ({})", peer.peer, peer.note))
        .collect();
    if reasons.is_empty() {
        "none".to_owned()
    } else {
        reasons.join("; ")
    }
}

/// Runs each peer in its own process, so that a failing peer does not stop the others.
async fn peers(manifest: &Path, url: &str, records: u64) -> anyhow::Result<Vec<Peer>> {
    let list = program(manifest, &["--list"]).await?;
    ensure!(list.status.success(), "benches/peers cannot be built");
    let (records, ordered) = (records.to_string(), ORDERED.min(records).to_string());
    let mut peers = Vec::new();
    for (name, modes) in listed(&String::from_utf8_lossy(&list.stdout)) {
        let sizes = ["--records", &records, "--ordered", &ordered];
        let arguments = [&["--url", url, "--only", &name], sizes.as_slice()].concat();
        let output = program(manifest, &arguments).await?;
        let measured = read(&String::from_utf8_lossy(&output.stdout))?;
        peers.extend(with_missing(
            &name,
            &modes,
            measured,
            &output.status.to_string(),
        ));
    }
    for peer in peers.iter().filter(|peer| !peer.ok) {
        eprintln!("peer {} failed, {}: {}", peer.peer, peer.mode, peer.note);
    }
    Ok(peers)
}

async fn program(manifest: &Path, arguments: &[&str]) -> anyhow::Result<Output> {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["run", "--release", "--quiet", "--manifest-path"])
        .arg(manifest)
        .arg("--")
        .args(arguments)
        .stderr(Stdio::inherit());
    Ok(command.output().await?)
}

/// The peers and their modes, from lines of a name and a mode.
fn listed(lines: &str) -> Vec<(String, Vec<String>)> {
    let mut peers: Vec<(String, Vec<String>)> = Vec::new();
    for (name, mode) in lines.lines().filter_map(|line| line.split_once(' ')) {
        match peers.iter_mut().find(|(known, _)| known == name) {
            Some((_, modes)) => modes.push(mode.to_owned()),
            None => peers.push((name.to_owned(), vec![mode.to_owned()])),
        }
    }
    peers
}

/// The output of a peer's process, and a failure for each mode that is missing in it.
fn with_missing(name: &str, modes: &[String], measured: Vec<Peer>, ended: &str) -> Vec<Peer> {
    let missing_modes = modes
        .iter()
        .filter(|mode| measured.iter().all(|peer| peer.mode != **mode));
    let missing: Vec<Peer> = missing_modes
        .map(|mode| Peer {
            peer: name.to_owned(),
            version: String::new(),
            mode: mode.clone(),
            rate: None,
            ok: false,
            note: format!("its process ended without a figure: {ended}"),
        })
        .collect();
    [measured, missing].concat()
}

fn read(output: &str) -> anyhow::Result<Vec<Peer>> {
    let lines = output.lines().filter(|line| line.starts_with('{'));
    let peers = lines.map(|line| serde_json::from_str(line).with_context(|| line.to_owned()));
    peers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_peers_is_parsed() {
        let said = r#"starting
{"peer":"a","version":"1.0","language":"rust","mode":"unordered","records":10,"rate":12.5,"ok":true,"note":""}
{"peer":"b","version":"2.0","language":"go","mode":"ordered","records":10,"rate":null,"ok":false,"note":"not built"}"#;
        let peers = read(said).unwrap();
        assert_eq!(
            (peers.len(), peers[0].rate, peers[1].rate),
            (2, Some(12.5), None)
        );
        assert_eq!(failed(&peers, "ordered"), "b (not built)");
        assert_eq!(failed(&peers, "unordered"), "none");
        assert!(read("{}").is_err());
    }

    #[test]
    fn a_peer_whose_process_ends_early_has_failed_in_the_missing_modes() {
        let peers = listed("a unordered\na ordered\nb ordered\n");
        assert_eq!(peers.len(), 2);
        let said =
            r#"{"peer":"a","version":"1","mode":"unordered","rate":1.0,"ok":true,"note":""}"#;
        let measured = with_missing("a", &peers[0].1, read(said).unwrap(), "signal: 6");
        assert!(measured[0].ok && !measured[1].ok);
        assert_eq!(
            failed(&measured, "ordered"),
            "a (its process ended without a figure: signal: 6)"
        );
    }
}
