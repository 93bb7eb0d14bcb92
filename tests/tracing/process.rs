//! A traced process, and its output.

use std::{collections::BTreeMap, process::Output};

use serde::Deserialize;

/// A span that has ended, as OpenTelemetry exports it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) parent_is_remote: bool,
    pub(crate) state: String,
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) fields: BTreeMap<String, String>,
}

impl Span {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// The parent id of a span without a parent.
pub(crate) const NO_PARENT: &str = "0000000000000000";

/// The output of a process.
pub(crate) struct TracerOutput {
    pub(crate) spans: Vec<Span>,
    /// The whole output: spans, and log lines of every level and library.
    pub(crate) text: String,
    /// The log lines.
    pub(crate) lines: Vec<serde_json::Value>,
}

impl TracerOutput {
    pub(crate) fn named(&self, name: &str) -> Vec<Span> {
        let spans = self.spans.iter().filter(|span| span.name == name);
        spans.cloned().collect()
    }

    /// The log lines with this target: level and fields of each.
    pub(crate) fn lines_of(&self, target: &str) -> Vec<(String, serde_json::Value)> {
        let lines = self.lines.iter().filter(|line| line["target"] == target);
        let levels_and_fields = lines.map(|line| {
            let level = line["level"].as_str().unwrap_or_default();
            (level.to_owned(), line["fields"].clone())
        });
        levels_and_fields.collect()
    }
}

/// Runs a traced process to its end.
pub(crate) async fn tracer(arguments: &[&str]) -> TracerOutput {
    let running = tokio::process::Command::new(env!("CARGO_BIN_EXE_tracer"))
        .args(arguments)
        .kill_on_drop(true)
        .output();
    let limit = std::time::Duration::from_secs(60);
    let ended = tokio::time::timeout(limit, running).await;
    let Output {
        status,
        stdout,
        stderr,
    } = ended.expect("to end").expect("a process");
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(status.success(), "{status}\n{stderr}");
    let spans = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect(line));
    let lines = stderr
        .lines()
        .map(|line| serde_json::from_str(line).expect(line));
    TracerOutput {
        spans: spans.collect(),
        lines: lines.collect(),
        text: format!("{stdout}\n{stderr}"),
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}
