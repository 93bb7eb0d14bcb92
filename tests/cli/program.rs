//! Runs the program `outbox`.

use std::{
    process::{Output, Stdio},
    time::Duration,
};

use serde_json::Value;

/// No command of these tests may take longer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// The command, without the variables of the environment in which the tests run.
pub(crate) fn command(url: &str) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_outbox-cli"));
    for (name, _) in std::env::vars() {
        if name.starts_with("OUTBOX_") || name == "DATABASE_URL" {
            command.env_remove(name);
        }
    }
    command
        .env("OUTBOX_DATABASE_URL", url)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// The exit code and the output of the program.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for ProgramOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl ProgramOutput {
    /// Checks that the command succeeded without a message on stderr. Returns its output.
    #[track_caller]
    pub(crate) fn succeeds(self) -> String {
        assert_eq!((self.code, &*self.err), (0, ""), "{}", self.out);
        self.out
    }

    /// Checks that the command failed with this code and one line on stderr. Returns that line.
    #[track_caller]
    pub(crate) fn fails_with(self, code: i32) -> String {
        assert_eq!((self.code, &*self.out), (code, ""), "{}", self.err);
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        assert!(self.err.starts_with("outbox: "), "{}", self.err);
        self.err
    }

    /// The output as JSON objects, one per line.
    #[track_caller]
    pub(crate) fn objects(self) -> Vec<Value> {
        assert_eq!(self.code, 0, "{}", self.err);
        let lines = self.out.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The output as one JSON object.
    #[track_caller]
    pub(crate) fn object(self) -> Value {
        let mut objects = self.objects();
        assert_eq!(objects.len(), 1, "{objects:?}");
        objects.remove(0)
    }
}

/// Checks that the help of a command names every field of an object that it prints.
pub(crate) async fn is_documented(command: &str, object: &Value) {
    let help = outbox("", &format!("{command} --help")).await.succeeds();
    let json = help.rsplit("JSON, one object").next().unwrap();
    let words: Vec<&str> = json
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    for name in object.as_object().unwrap().keys() {
        assert!(
            words.contains(&name.as_str()),
            "{name} of {command}:\n{json}"
        );
    }
}

/// Runs the program. `arguments` are words with spaces between them.
pub(crate) async fn outbox(url: &str, arguments: &str) -> ProgramOutput {
    run(command(url).args(arguments.split(' '))).await
}

pub(crate) async fn run(command: &mut tokio::process::Command) -> ProgramOutput {
    let output = tokio::time::timeout(TIMEOUT, command.output()).await;
    output.unwrap().unwrap().into()
}

/// Waits until `holds` returns `true`.
pub(crate) async fn until<F: Future<Output = bool>>(mut holds: impl FnMut() -> F) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
}
