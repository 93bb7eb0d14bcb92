//! [`Failure`]: one line that says what is wrong and what to do, and an exit code.

use std::{error::Error, io, process::ExitCode, sync::OnceLock};

use sqlx::error::DatabaseError;

use crate::text::printable;

pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why a command ends without success.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    line: String,
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

    /// What is wrong and what to do.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    /// Prints the line on the standard error output.
    pub(crate) fn report(&self) -> ExitCode {
        if self.exit != Exit::OutputClosed {
            eprintln!("outbox: {}", self.line);
        }
        ExitCode::from(self.exit as u8)
    }

    /// An error of the database while the program was `doing` something.
    pub(crate) fn of_database(doing: &str, error: &sqlx::Error) -> Self {
        let Some(refused) = error.as_database_error() else {
            return Self::of_connection(doing, error);
        };
        let message = redacted(refused.message());
        let (exit, line) = match Refusal::of(refused) {
            Refusal::NoTables => (
                Exit::Database,
                "the outbox tables were not found: create them with `outbox migrate`, or name them with --schema and --table-prefix".to_owned(),
            ),
            Refusal::OldTables => (
                Exit::Database,
                format!("the outbox tables are older than this program ({message}): update them with `outbox migrate`"),
            ),
            Refusal::NoPermission => (
                Exit::Database,
                format!("permission denied ({message}): use another user, or grant the permission"),
            ),
            Refusal::NoEntry => (
                Exit::Database,
                format!("the database refused the connection ({message}): check user, password and database in --url or OUTBOX_DATABASE_URL"),
            ),
            Refusal::NoFile => (
                Exit::Database,
                format!("the database file cannot be opened ({message}): check the path in --url or OUTBOX_DATABASE_URL; `?mode=rwc` at its end creates the file"),
            ),
            Refusal::Other => (Exit::Failed, format!("database error while {doing}: {message}")),
        };
        Self::new(exit, line)
    }

    /// An error that the database did not send.
    fn of_connection(doing: &str, error: &sqlx::Error) -> Self {
        let message = match error {
            sqlx::Error::PoolTimedOut => "timeout".to_owned(),
            sqlx::Error::Configuration(cause) => redacted(&cause.to_string()),
            other => redacted(&with_causes(other)),
        };
        let (exit, line) = match error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => (
                Exit::Failed,
                format!("database error while {doing}: {message}"),
            ),
            sqlx::Error::Configuration(_) => (
                Exit::Database,
                format!(
                    "the database URL is invalid ({message}): it must look like postgres://user@host/database, mysql://user@host/database or sqlite://path"
                ),
            ),
            _ => (
                Exit::Database,
                format!(
                    "cannot connect to the database ({message}): check --url or OUTBOX_DATABASE_URL, and that the server is running"
                ),
            ),
        };
        Self::new(exit, line)
    }
}

impl From<outbox::Error> for Failure {
    fn from(error: outbox::Error) -> Self {
        match &error {
            outbox::Error::Database { doing, source } => Self::of_database(doing, source),
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

/// Why a database refused a statement or a connection.
enum Refusal {
    NoTables,
    OldTables,
    NoPermission,
    NoEntry,
    NoFile,
    Other,
}

impl Refusal {
    fn of(error: &dyn DatabaseError) -> Self {
        if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
            return match error.number() {
                1146 => Self::NoTables,
                1054 => Self::OldTables,
                1142 | 1143 | 1227 | 1290 | 1370 | 1836 => Self::NoPermission,
                1044 | 1045 | 1049 | 1698 => Self::NoEntry,
                _ => Self::Other,
            };
        }
        let code = error.code().unwrap_or_default();
        let sqlite = error.try_downcast_ref::<sqlx::sqlite::SqliteError>();
        if sqlite.is_some() {
            let says = |text: &str| error.message().contains(text);
            // SQLite's primary code is the lowest byte of the extended code.
            return match code.parse::<u32>().unwrap_or(0) & 0xff {
                8 | 23 => Self::NoPermission,
                14 => Self::NoFile,
                1 if says("no such table") || says("unknown database") => Self::NoTables,
                1 if says("no such column") => Self::OldTables,
                _ => Self::Other,
            };
        }
        match &*code {
            "42P01" | "3F000" => Self::NoTables,
            "42703" => Self::OldTables,
            "42501" | "25006" => Self::NoPermission,
            "28P01" | "28000" | "3D000" => Self::NoEntry,
            _ => Self::Other,
        }
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
