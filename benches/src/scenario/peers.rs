//! `peers`: other libraries on the same server, each with its own benchmark program in
//! `benches/peers`. Those that have no order against us, who have it; and those that have it too.

use std::path::Path;

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
/// Of those that keep an order, which are slow: their rates do not depend on it.
const ORDERED: u64 = 10_000;
const ROUNDS: usize = 3;

/// What the program of the peers says of each.
#[derive(Debug, Clone, Deserialize)]
struct Peer {
    peer: String,
    version: String,
    mode: String,
    rate: Option<f64>,
    ok: bool,
}

pub(crate) async fn run<Db: Bench>(site: &Site<Db>) -> anyhow::Result<Vec<Verdict>> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/Cargo.toml");
    if Db::KIND != Kind::Postgres {
        let why = "the peers are compared on PostgreSQL";
        return Ok(vec![Verdict::skipped("peers", Db::KIND, why)]);
    }
    if !manifest.exists() {
        let why = "there is no benches/peers";
        return Ok(vec![Verdict::skipped("peers", Db::KIND, why)]);
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
            let why = "no peer of this kind could be measured";
            return Verdict::skipped(format!("peers/{mode}"), Db::KIND, why);
        };
        let pair = (ours, rate);
        let name = format!("peers/{mode}");
        Verdict::more_is_better(name, Some(Db::KIND), "records/s", pair, times)
            .with("records", records)
            .with("fastest", format!("{} {}", fastest.peer, fastest.version))
            .with("all", all(&peers, mode))
    };
    Ok(vec![verdict("unordered", 4.0), verdict("ordered", 100.0)])
}

fn all(peers: &[Peer], mode: &str) -> serde_json::Value {
    let of_mode = peers.iter().filter(|peer| peer.mode == mode);
    of_mode
        .map(|peer| (peer.peer.clone(), json!(peer.rate)))
        .collect()
}

async fn peers(manifest: &Path, url: &str, records: u64) -> anyhow::Result<Vec<Peer>> {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--release", "--quiet", "--manifest-path"])
        .arg(manifest)
        .args(["--", "--url", url, "--records", &records.to_string()])
        .args(["--ordered", &ORDERED.min(records).to_string()])
        .stderr(std::process::Stdio::inherit())
        .output()
        .await?;
    ensure!(output.status.success(), "benches/peers failed");
    read(&String::from_utf8_lossy(&output.stdout))
}

fn read(said: &str) -> anyhow::Result<Vec<Peer>> {
    let lines = said.lines().filter(|line| line.starts_with('{'));
    let peers = lines.map(|line| serde_json::from_str(line).with_context(|| line.to_owned()));
    peers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_peers_say_is_read() {
        let said = r#"starting
{"peer":"a","version":"1.0","language":"rust","mode":"unordered","records":10,"rate":12.5,"ok":true,"note":""}
{"peer":"b","version":"2.0","language":"go","mode":"ordered","records":10,"rate":null,"ok":false,"note":"not built"}"#;
        let peers = read(said).unwrap();
        assert_eq!(
            (peers.len(), peers[0].rate, peers[1].rate),
            (2, Some(12.5), None)
        );
        assert!(read("{}").is_err());
    }
}
