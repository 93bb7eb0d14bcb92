//! A long change that a signal interrupts.

use outbox_tests::on_each_database;

use crate::{
    program::{ProgramOutput, TIMEOUT, command, outbox, until},
    rows::{deliver, execute, publish},
    terminal::Terminal,
};

/// The number that follows `word` in a text of the program.
fn number_after(text: &str, word: &str) -> i64 {
    let rest = text
        .split(word)
        .nth(1)
        .unwrap_or_else(|| panic!("{word} in {text}"));
    let digits: String = rest
        .trim_start()
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .collect();
    digits.replace(',', "").parse().unwrap()
}

on_each_database! {
    async fn an_interrupted_replay_loses_no_delivery_and_can_be_continued(db) {
        let keys: Vec<String> = (0..3000).map(|n| format!("k{n}")).collect();
        publish(&db, &keys.iter().map(|key| &**key).collect::<Vec<_>>()).await;
        execute!(db, deliver(&db, "true", "charge-card", "failed", true));
        let count = async |condition: &str| {
            database::number(&db.pool, &format!("select count(*) from outbox_delivery where {condition}")).await
        };

        let child = command(&db.url()).args(["replay", "--all", "--batch-size", "5"]).spawn().unwrap();
        let pid = child.id().unwrap().to_string();
        until(async || count("status = 'retrying'").await > 0).await;
        let kill = tokio::process::Command::new("kill").args(["-INT", &pid]).status();
        assert!(kill.await.unwrap().success());
                let ended = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await;
                let ran = ProgramOutput::from(ended.unwrap().unwrap());
        assert_eq!(ran.code, 130, "{ran:?}");

        // The program reports exactly how many deliveries it has replayed.
        let (done, left) = (count("status = 'retrying'").await, count("status = 'failed'").await);
        assert!(done > 0 && left > 0 && done + left == 3000 && done % 5 == 0, "{done} and {left}");
        assert_eq!(number_after(&ran.out, "replayed"), done);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        assert!(ran.err.starts_with("outbox: interrupted: replayed") && ran.err.contains("run the same command to continue"), "{}", ran.err);
        assert_eq!((number_after(&ran.err, "replayed"), number_after(&ran.err, "deliveries,")), (done, left));

        let rest = outbox(&db.url(), "replay --all").await.succeeds();
        assert_eq!(number_after(&rest, "replayed"), left);
        // Each was replayed once: a second replay would be another attempt.
        assert_eq!(count("attempt = 5 and status = 'retrying'").await, 3000);
    }
}

#[tokio::test]
async fn a_long_replay_shows_its_progress_in_a_terminal() {
    use outbox_tests::database::sqlite as database;
    let db = database::fresh().await;
    let keys: Vec<String> = (0..3000).map(|n| format!("k{n}")).collect();
    publish(&db, &keys.iter().map(|key| &**key).collect::<Vec<_>>()).await;
    execute!(db, deliver(&db, "true", "charge-card", "failed", true));
    let mut terminal = Terminal::start(&db.url(), "replay --all --batch-size 1");
    until(async || terminal.all().contains(" of 3,000 (")).await;
    terminal.press(b"\x03").await;
    terminal.shows("finishing the current batch").await;
    terminal.shows("outbox: interrupted: replayed").await;
    let output = terminal.all();
    assert!(output.contains(" %), about "), "{output}");
    terminal.ended_with(130).await;
    let left = database::number(
        &db.pool,
        "select count(*) from outbox_delivery where status = 'failed'",
    )
    .await;
    assert!((1..3000).contains(&left), "{left}");
}

#[tokio::test]
async fn a_terminated_replay_finishes_its_batch() {
    use outbox_tests::database::sqlite as database;
    let db = database::fresh().await;
    let keys: Vec<String> = (0..3000).map(|n| format!("k{n}")).collect();
    publish(&db, &keys.iter().map(|key| &**key).collect::<Vec<_>>()).await;
    execute!(db, deliver(&db, "true", "charge-card", "failed", true));
    let replayed = "select count(*) from outbox_delivery where status <> 'failed'";

    let mut replay = command(&db.url());
    replay.args(["replay", "--all", "--batch-size", "5"]);
    let child = replay.spawn().unwrap();
    let pid = child.id().unwrap().to_string();
    until(async || database::number(&db.pool, replayed).await > 0).await;
    let kill = tokio::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status();
    assert!(kill.await.unwrap().success());
    let ended = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await;
    let ran = ProgramOutput::from(ended.unwrap().unwrap());
    assert_eq!(ran.code, 130, "{ran:?}");
    let done = database::number(&db.pool, replayed).await;
    assert!(done < 3000 && done % 5 == 0, "{done}");
    assert_eq!(number_after(&ran.err, "replayed"), done);
}
