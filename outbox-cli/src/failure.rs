//! [`Failure`]: one line that says what is wrong and what to do, and an exit code.

use std::{error::Error, io, process::ExitCode, sync::OnceLock};

use sqlx::error::DatabaseError;

use crate::text::printable;

pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why a command ends without success.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    /// What is wrong and what to do.
    pub(crate) line: String,
}

/// The exit codes, which `outbox --help` explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The reader of the output closed it. This is no failure of the program.
    OutputClosed = 0,
    Failed = 1,
    Usage = 2,
    /// The database cannot be used.
    Database = 3,
    NotFound = 4,
    Interrupted = 130,
}

impl Failure {
    pub(crate) fn new(exit: Exit, line: impl Into<String>) -> Self {
        let line = line.into();
        let words: Vec<&str> = line.split_whitespace().collect();
        Self {
            exit,
            line: printable(&words.join(" ")),
        }
    }

    pub(crate) fn with(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// Adds what the command had done before it failed.
    pub(crate) fn after(self, done: &str) -> Self {
        let line = format!("{}; {done}", self.line);
        Self { line, ..self }
    }

    /// Prints the line on the standard error output.
    pub(crate) fn report(&self) -> ExitCode {
        if self.exit != Exit::OutputClosed {
            eprintln!("outbox: {}", self.line);
        }
        ExitCode::from(self.exit as u8)
    }

    /// An error of the database during an operation.
    pub(crate) fn of_database(operation: &str, error: &sqlx::Error) -> Self {
        let message = redacted(&match error {
            sqlx::Error::Database(refusal) => refusal.message().to_owned(),
            sqlx::Error::Configuration(cause) => cause.to_string(),
            sqlx::Error::PoolTimedOut => "timeout".to_owned(),
            other => with_causes(other),
        });
        let Some((problem, advice)) = cause(error) else {
            let line = format!("database error during operation `{operation}`: {message}");
            return Self::new(Exit::Failed, line);
        };
        Self::new(Exit::Database, format!("{problem} ({message}): {advice}"))
    }
}

impl From<outbox::Error> for Failure {
    fn from(error: outbox::Error) -> Self {
        match &error {
            outbox::Error::Database { operation, source } => {
                Self::of_database(operation.as_str(), source)
            }
            outbox::Error::NewerSchema { found, known } => Self::new(
                Exit::Database,
                format!(
                    "the outbox tables have version {found}, and this program supports version {known}: use a newer `outbox`"
                ),
            ),
            outbox::Error::BadName { .. } => Self::new(Exit::Usage, error.to_string()),
            other => Self::new(Exit::Failed, redacted(&with_causes(other))),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::OutputClosed, "");
        }
        Self::new(Exit::Failed, format!("cannot write the output: {error}"))
    }
}

/// Why the database cannot be used, and what to do. None if it can be used and only this statement
/// failed.
fn cause(error: &sqlx::Error) -> Option<(&'static str, &'static str)> {
    let code = match error {
        sqlx::Error::Database(refusal) => code(&**refusal),
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => return None,
        sqlx::Error::Configuration(_) => "bad URL".to_owned(),
        _ => "no connection".to_owned(),
    };
    // The codes of the three databases have different lengths.
    Some(match &*code {
        "bad URL" => (
            "the database URL is invalid",
            "it must look like postgres://user@host/database, mysql://user@host/database or sqlite://path",
        ),
        "no connection" => (
            "cannot connect to the database",
            "check --url or OUTBOX_DATABASE_URL, and that the server is running",
        ),
        "42P01" | "3F000" | "1146" | "no table" => (
            "the outbox tables were not found",
            "create them with `outbox migrate`, or name them with --schema and --table-prefix",
        ),
        "42703" | "1054" | "no column" => (
            "the outbox tables are older than this program",
            "update them with `outbox migrate`",
        ),
        "42501" | "25006" | "1142" | "1143" | "1227" | "1290" | "1370" | "1836" | "8" | "23" => (
            "permission denied",
            "use another user, or grant the permission",
        ),
        "28P01" | "28000" | "3D000" | "1044" | "1045" | "1049" | "1698" => (
            "the database refused the connection",
            "check user, password and database in --url or OUTBOX_DATABASE_URL",
        ),
        "14" => (
            "the database file cannot be opened",
            "check the path in --url or OUTBOX_DATABASE_URL; `?mode=rwc` at its end creates the file",
        ),
        _ => return None,
    })
}

/// The SQLSTATE of PostgreSQL, the number of MySQL, or the primary code of SQLite. SQLite has one code
/// for all mistakes in a statement: its message tells them apart.
fn code(refusal: &dyn DatabaseError) -> String {
    if let Some(error) = refusal.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return error.number().to_string();
    }
    let code = refusal.code().unwrap_or_default();
    let sqlite = refusal.try_downcast_ref::<sqlx::sqlite::SqliteError>();
    if sqlite.is_none() {
        return code.into_owned();
    }
    let says = |text: &str| refusal.message().contains(text);
    // The primary code is the lowest byte of the extended code.
    match code.parse::<u32>().unwrap_or(0) & 0xff {
        1 if says("no such table") || says("unknown database") => "no table".to_owned(),
        1 if says("no such column") => "no column".to_owned(),
        primary => primary.to_string(),
    }
}

/// The password of the URL. `main` writes it once, before anything can fail.
static HIDDEN: OnceLock<Vec<String>> = OnceLock::new();

/// Messages of drivers and servers are printed without these texts.
pub(crate) fn hide(texts: Vec<String>) {
    let _ = HIDDEN.set(texts);
}

fn redacted(message: &str) -> String {
    let hidden = HIDDEN.get().map_or(&[][..], Vec::as_slice);
    let redact = |message: String, text: &String| message.replace(text.as_str(), "***");
    hidden.iter().fold(message.to_owned(), redact)
}

/// The error and its causes, without repetition.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
