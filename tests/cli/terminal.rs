//! The program in a real terminal.

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::program::{TIMEOUT, command, until};

const ROWS: u16 = 40;
const COLUMNS: u16 = 100;

/// The program in a terminal that `script` of util-linux provides.
pub(crate) struct Terminal {
    child: tokio::process::Child,
    keys: tokio::process::ChildStdin,
    screen: Arc<Mutex<vt100::Parser>>,
    all: Arc<Mutex<String>>,
}

impl Terminal {
    pub(crate) fn start(url: &str, arguments: &str) -> Self {
        let cli = command(url);
        let program = cli.as_std().get_program().to_str().unwrap();
        // `stty` prints the settings of the terminal after the program has ended. Ctrl-C also
        // reaches the shell, which could end with the program; the trap prevents that, and the
        // program does not inherit it.
        let line = format!(
            "trap : INT; stty rows {ROWS} cols {COLUMNS}; {program} {arguments}; code=$?; stty -a; echo ended with $code"
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
        let (screen_writer, all_writer) = (Arc::clone(&screen), Arc::clone(&all));
        let mut output = child.stdout.take().unwrap();
        tokio::spawn(async move {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes).await {
                screen_writer.lock().unwrap().process(&bytes[..count]);
                all_writer
                    .lock()
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

    pub(crate) fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    pub(crate) async fn shows(&self, expected: &str) {
        let shown = until(async || self.text().contains(expected));
        if tokio::time::timeout(TIMEOUT / 2, shown).await.is_err() {
            panic!("no `{expected}` in:\n{}", self.text());
        }
    }

    /// Presses a key.
    pub(crate) async fn press(&mut self, key: &[u8]) {
        self.keys.write_all(key).await.unwrap();
        self.keys.flush().await.unwrap();
    }

    /// The whole output so far, with control characters.
    pub(crate) fn all(&self) -> String {
        self.all.lock().unwrap().clone()
    }

    /// Whether the program shows the alternate screen of the terminal, with a hidden cursor.
    pub(crate) fn is_alternate_screen(&self) -> bool {
        let screen = self.screen.lock().unwrap();
        assert_eq!(
            screen.screen().alternate_screen(),
            screen.screen().hide_cursor()
        );
        screen.screen().alternate_screen()
    }

    /// Checks that the program has ended with this code and has restored the terminal.
    pub(crate) async fn ended_with(mut self, code: i32) {
        self.shows(&format!("ended with {code}")).await;
        assert!(!self.is_alternate_screen());
        drop(self.keys);
        let ended = tokio::time::timeout(TIMEOUT, self.child.wait()).await;
        assert!(ended.unwrap().unwrap().success());
        let all = self.all.lock().unwrap().clone();
        let settings: Vec<&str> = all
            .rsplit("speed")
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        for setting in ["icanon", "echo", "isig", "opost"] {
            assert!(settings.contains(&setting), "{setting} in {settings:?}");
        }
    }
}
