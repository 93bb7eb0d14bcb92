//! `outbox watch`, in a real terminal and without one.

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
};

use outbox_tests::{database, on_each_database};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{
    program::{PATIENCE, command, outbox, until},
    rows::{deliver, execute, in_seconds, publish},
};

const ROWS: u16 = 40;
const COLUMNS: u16 = 100;

/// The program in a terminal, which `script` of util-linux provides.
struct Terminal {
    child: tokio::process::Child,
    keys: tokio::process::ChildStdin,
    screen: Arc<Mutex<vt100::Parser>>,
    all: Arc<Mutex<String>>,
}

impl Terminal {
    fn start(url: &str) -> Self {
        let program = command(url);
        let program = program.as_std().get_program().to_str().unwrap();
        // What the terminal is like afterwards is asked in it.
        let line = format!(
            "stty rows {ROWS} cols {COLUMNS}; {program} watch --interval 100ms; code=$?; stty -a; echo ended with $code"
        );
        let mut child = tokio::process::Command::new("script")
            .args(["-qefc", &line, "/dev/null"])
            .env("OUTBOX_DATABASE_URL", url)
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let all = Arc::<Mutex<String>>::default();
        let (shown, said) = (Arc::clone(&screen), Arc::clone(&all));
        let mut output = child.stdout.take().unwrap();
        tokio::spawn(async move {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes).await {
                shown.lock().unwrap().process(&bytes[..count]);
                said.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        let keys = child.stdin.take().unwrap();
        Self {
            child,
            keys,
            screen,
            all,
        }
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    async fn shows(&self, part: &str) {
        let shown = until(async || self.text().contains(part));
        if tokio::time::timeout(PATIENCE / 2, shown).await.is_err() {
            panic!("no `{part}` in:\n{}", self.text());
        }
    }

    /// Presses a key, which is to end it. Then the terminal is as it was before.
    async fn ends_with(mut self, key: &[u8]) {
        {
            let screen = self.screen.lock().unwrap();
            assert!(screen.screen().alternate_screen() && screen.screen().hide_cursor());
        }
        self.keys.write_all(key).await.unwrap();
        self.keys.flush().await.unwrap();
        self.shows("ended with 0").await;
        drop(self.keys);
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        assert!(ended.unwrap().unwrap().success());
        let all = self.all.lock().unwrap().clone();
        let after = all.rsplit("\u{1b}[?1049l").next().unwrap();
        let screen = self.screen.lock().unwrap();
        assert!(
            !screen.screen().alternate_screen() && !screen.screen().hide_cursor(),
            "{after}"
        );
        let words: Vec<&str> = after.split_whitespace().collect();
        for on in ["icanon", "echo", "isig", "opost"] {
            assert!(words.contains(&on), "{on} in {after}");
        }
    }
}

on_each_database! {
    async fn watch_shows_what_happens_in_a_terminal_until_q(db) {
        publish(&db, &["a", "a", "b"]).await;
        execute!(db, deliver(&db, "id = 1", "charge-card", "failed", true));
        execute!(db, deliver(&db, "id = 2", "charge-card", "waiting", true));
        let (id, now, later) = (database::ID, database::NOW, in_seconds(&db, 30));
        execute!(db, [
            format!("insert into outbox_instance (id, started_at, expires_at) values ({id}, {now}, {later})"),
            "insert into outbox_lease (part, owner) select 7, id from outbox_instance".to_owned(),
        ]);
        let terminal = Terminal::start(&db.url());
        for part in [
            "pending 1 ", "waiting 1 ", "failed 1", "lag ", "q ends it",
            "partitions", "charge-card", "card declined: 7",
        ] {
            terminal.shows(part).await;
        }
        // It is alive.
        publish(&db, &["c", "d", "e"]).await;
        terminal.shows("pending 4 ").await;
        execute!(db, ["update outbox_record set status = 'completed' where status = 'pending'".to_owned()]);
        terminal.shows("pending 0 ").await;
        terminal.shows("lag none").await;
        terminal.ends_with(b"q").await;
    }
}

#[tokio::test]
async fn ctrl_c_ends_it_too() {
    let db = database::sqlite::fresh().await;
    let terminal = Terminal::start(&db.url());
    terminal.shows("q ends it").await;
    terminal.ends_with(b"\x03").await;
}

#[tokio::test]
async fn a_database_that_goes_away_is_shown_and_may_come_back() {
    let db = database::sqlite::fresh().await;
    let terminal = Terminal::start(&db.url());
    terminal.shows("q ends it").await;
    database::sqlite::execute(&db.pool, "alter table outbox_record rename to hidden").await;
    terminal.shows("there are no outbox tables here").await;
    database::sqlite::execute(&db.pool, "alter table hidden rename to outbox_record").await;
    terminal.shows("q ends it").await;
    terminal.ends_with(b"q").await;
}

#[tokio::test]
async fn without_a_terminal_it_prints_one_look_after_another() {
    let db = database::sqlite::fresh().await;
    publish(&db, &["a", "b"]).await;
    let text = outbox(&db.url(), "watch --count 3 --interval 60ms")
        .await
        .well();
    assert_eq!(text.matches("pending 2 ").count(), 3, "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(
        text.contains("published -/s") && text.contains("published 0.0/s"),
        "{text}"
    );

    let looks = outbox(&db.url(), "watch --count 2 --interval 60ms --json")
        .await
        .objects();
    assert_eq!(looks.len(), 2);
    assert!(looks.iter().all(|look| look["pending"] == 2));
    assert!(looks[0]["published_per_second"].is_null() && looks[1]["published_per_second"] == 0.0);
}
