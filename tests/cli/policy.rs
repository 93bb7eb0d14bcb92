//! `outbox policy` prints the schedules of configuration files, also of those that were written for
//! the libraries whose keys this one reads.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::{ProgramOutput, command, is_documented, run};

fn reference(file: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/config/reference");
    folder.join(file)
}

async fn policy(path: &Path, json: bool) -> ProgramOutput {
    let mut command = command("");
    command.arg("policy").arg("--config").arg(path);
    if json {
        command.arg("--json");
    }
    run(&mut command).await
}

/// The shortest and the longest value of each delay, in milliseconds.
fn delays(policy: &Value) -> Vec<(u64, u64)> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "short delays"
    )]
    let millis = |seconds: &Value| (seconds.as_f64().unwrap() * 1000.0).round() as u64;
    let schedule = policy["schedule"].as_array().unwrap();
    let ranges = schedule.iter().map(|retry| &retry["delay"]);
    ranges
        .map(|range| (millis(&range[0]), millis(&range[1])))
        .collect()
}

fn fixed(seconds: &[u64]) -> Vec<(u64, u64)> {
    seconds.iter().map(|s| (s * 1000, s * 1000)).collect()
}

fn between(low: &[u64], high: &[u64]) -> Vec<(u64, u64)> {
    low.iter().copied().zip(high.iter().copied()).collect()
}

#[tokio::test]
async fn every_reference_configuration_has_its_documented_schedule() {
    let doubling = fixed(&[1, 2, 4]);
    let jittered = between(
        &[1000, 3000, 7000, 15_000, 31_000, 59_000, 59_000],
        &[3000, 5000, 9000, 17_000, 33_000, 61_000, 61_000],
    );
    let added = between(
        &[2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000],
        &[3000, 5000, 9000, 17_000, 33_000, 61_000, 61_000],
    );
    let expected = [
        ("retry_fixed.yaml", fixed(&[5; 5])),
        ("retry_linear.yaml", fixed(&[2, 4, 6, 8, 10])),
        ("retry_exponential.yaml", doubling.clone()),
        ("retry_exceptions.yaml", doubling.clone()),
        ("everything.yaml", doubling.clone()),
        ("old_fixed.yaml", fixed(&[5; 5])),
        (
            "old_exponential.yaml",
            fixed(&[1, 2, 4, 8, 16, 32, 64, 128, 256, 300]),
        ),
        ("options_default.yaml", fixed(&[1, 2, 4, 8, 16])),
        ("retry_jitter.yaml", jittered),
        ("old_jittered.yaml", added),
        ("options_full_jitter.yaml", between(&[0, 0], &[500, 1000])),
        (
            "options_partial_jitter.yaml",
            between(&[250, 500], &[750, 1500]),
        ),
        // These files have no section for retries.
        ("schema.yaml", doubling.clone()),
        ("processing.yaml", doubling.clone()),
        ("processing_dependent.yaml", doubling.clone()),
        ("processing_independent.yaml", doubling),
    ];
    assert_eq!(
        std::fs::read_dir(reference("")).unwrap().count(),
        expected.len()
    );
    for (file, schedule) in expected {
        let default = policy(&reference(file), true).await.object();
        assert_eq!(delays(&default), schedule, "{file}");
        let has_no_retries = file.starts_with("schema") || file.starts_with("processing");
        assert_eq!(default["configured"], json!(!has_no_retries), "{file}");
        policy(&reference(file), false).await.succeeds();
    }
}

#[tokio::test]
async fn policy_prints_a_table_with_a_chart() {
    let text = policy(&reference("retry_jitter.yaml"), false)
        .await
        .succeeds();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("default: exponential 2s ×2 up to 1m, max 7 retries"),
        "{text}"
    );
    assert!(
        lines[1].contains("after") && lines[1].contains("since the first failure"),
        "{text}"
    );
    let third: Vec<&str> = lines[4]
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect();
    assert_eq!(&third[..3], ["3", "7s to 9s", "11s to 17s"], "{text}");
    // The longest bar is 61 s and 40 characters. The shortest delay is solid, the rest is shaded.
    assert_eq!(third[3], "████░", "{text}");
    assert_eq!(lines.last(), Some(&"  then the delivery has failed"));
}

#[tokio::test]
async fn policy_prints_named_policies_limits_and_error_names() {
    let folder = std::env::temp_dir().join(format!("outbox-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("outbox.yaml");
    std::fs::write(
        &file,
        "outbox:\n  retry:\n    max-retries: 100\n    policies:\n      bank:\n        policy: fixed\n        \
        max-retries: 9\n        max-elapsed: 1m\n        fixed: { delay: 25s }\n        exclude-exceptions: [shop::CardDeclined]\n",
    )
    .unwrap();
    let all = policy(&file, true).await.objects();
    assert_eq!(
        all.iter().map(|one| &one["policy"]).collect::<Vec<_>>(),
        ["default", "bank"]
    );
    assert_eq!(
        (&all[0]["max_retries"], delays(&all[0]).len()),
        (&json!(100), 20)
    );
    is_documented("policy --config x", &all[0]).await;
    is_documented("policy --config x", &all[0]["schedule"][0]).await;
    // A third retry, after 75 s, would exceed `max-elapsed`.
    assert_eq!(delays(&all[1]), fixed(&[25, 25]));
    assert_eq!(all[1]["never_errors"], json!(["shop::CardDeclined"]));
    let place = format!("{}:10:30", file.display());
    assert_eq!(
        all[1]["unknown_errors"],
        json!([{ "name": "shop::CardDeclined", "place": place, "nearest": null }])
    );
    is_documented("policy --config x", &all[1]["unknown_errors"][0]).await;
    let text = policy(&file, false).await.succeeds();
    for expected in [
        ".. up to 100 retries",
        "bank: fixed 25s",
        "never on shop::CardDeclined",
        "outbox.yaml:10:30: `shop::CardDeclined` is no built-in error type; the service has to register it",
        "later retries would exceed max-elapsed",
    ] {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    std::fs::write(&file, "outbox:\n  retry:\n    max-retrys: 1\n").unwrap();
    let line = policy(&file, false).await.fails_with(1);
    assert!(
        line.contains("max-retrys") && line.contains("max-retries"),
        "{line}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
    let line = policy(&file, false).await.fails_with(4);
    assert!(line.contains("outbox.yaml"), "{line}");
}
