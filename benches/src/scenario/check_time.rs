//! `cargo check` of a generated crate with 300 handlers, against the same functions without the
//! attributes. Dependencies are checked before; only the crate itself is timed.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};

use crate::{
    progress::Progress,
    rounds::{alternate, median},
    verdict::{Verdict, rounded},
};

const HANDLERS: usize = 300;
const EVENTS: usize = 30;

/// This figure has no goal.
pub(crate) async fn run(rounds: usize) -> anyhow::Result<Vec<Verdict>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?;
    let folder = root.join("target/check-time");
    let with = write_crate(&folder, &root, "with_attributes", true)?;
    let without = write_crate(&folder, &root, "without_attributes", false)?;
    check(&with)?;
    check(&without)?;

    let (ours, reference) = (async || check(&with), async || check(&without));
    let progress = Progress::new();
    let (with_times, without_times) =
        alternate(&progress, "check-time", rounds, ours, reference).await?;
    let (with_time, without_time) = (median(&with_times), median(&without_times));
    let difference = with_time.saturating_sub(without_time);
    let per_handler = difference.as_secs_f64() * 1e3 / HANDLERS as f64;
    let pair = (with_time.as_secs_f64(), without_time.as_secs_f64());
    let verdict = Verdict::less_is_better("check-time", None, "s", pair, None);
    Ok(vec![
        verdict
            .with("handlers", HANDLERS)
            .with("ms_per_handler", rounded(per_handler)),
    ])
}

fn write_crate(
    folder: &Path,
    root: &Path,
    name: &str,
    attributes: bool,
) -> anyhow::Result<PathBuf> {
    let crate_folder = folder.join(name);
    fs::create_dir_all(crate_folder.join("src"))?;
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\noutbox = {{ path = {:?}, default-features = false, features = [\"inventory\"] }}\nserde = {{ version = \"1\", features = [\"derive\"] }}\n",
        root.join("outbox")
    );
    fs::write(crate_folder.join("Cargo.toml"), manifest)?;
    // The crate uses the lock file of the workspace, so that cargo neither resolves nor downloads.
    fs::copy(root.join("Cargo.lock"), crate_folder.join("Cargo.lock"))?;
    fs::write(crate_folder.join("src/lib.rs"), source(attributes)?)?;
    Ok(crate_folder)
}

fn source(attributes: bool) -> anyhow::Result<String> {
    let mut source = String::from("use outbox::*;\n#[derive(Clone)] pub struct Bank;\n");
    for event in 0..EVENTS {
        write!(
            source,
            "#[derive(serde::Serialize, serde::Deserialize, OutboxEvent)]\n\
             #[outbox_event(name = \"event.{event}\", key = id)]\n\
             pub struct Event{event} {{ pub id: i64, pub text: String }}\n"
        )?;
    }
    for handler in 0..HANDLERS {
        if attributes {
            source.push_str(
                "#[outbox_handler]\n#[retryable(exponential(initial = \"1s\"), max_retries = 5)]\n",
            );
        }
        write!(
            source,
            "pub async fn handler{handler}(event: Event{}, meta: &Metadata, State(bank): State<Bank>) -> Result<(), std::io::Error> {{\n\
             \x20   let _ = (event.id, event.text, meta.attempt(), bank);\n    Ok(())\n}}\n",
            handler % EVENTS
        )?;
    }
    Ok(source)
}

fn check(crate_folder: &Path) -> anyhow::Result<Duration> {
    let lib = crate_folder.join("src/lib.rs");
    let source = fs::read_to_string(&lib)?;
    fs::write(&lib, source)?; // with a newer time stamp cargo checks the crate again
    let start = Instant::now();
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline"])
        .current_dir(crate_folder)
        .env("CARGO_TARGET_DIR", crate_folder.with_file_name("target"))
        .output()
        .context("cargo cannot be started")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    Ok(start.elapsed())
}
