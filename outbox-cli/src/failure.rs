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

    /// An error of the database during an operation.
    pub(crate) fn of_database(operation: &str, error: &sqlx::Error) -> Self {
        let message = redacted(&match error {
            sqlx::Error::Database(refusal) => refusal.message().to_owned(),
            sqlx::Error::Configuration(cause) => cause.to_string(),
            sqlx::Error::PoolTimedOut => "timeout".to_owned(),
            other => with_causes(other),
        });
        match Cause::of(error) {
            Some(Cause { problem, advice }) => {
                Self::new(Exit::Database, format!("{problem} ({message}): {advice}"))
            }
            None => Self::new(
                Exit::Failed,
                format!("database error during operation `{operation}`: {message}"),
            ),
        }
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

/// Why the database cannot be used, and what to do.
struct Cause {
    problem: &'static str,
    advice: &'static str,
}

const NO_TABLES: Cause = Cause {
    problem: "the outbox tables were not found",
    advice: "create them with `outbox migrate`, or name them with --schema and --table-prefix",
};
const OLD_TABLES: Cause = Cause {
    problem: "the outbox tables are older than this program",
    advice: "update them with `outbox migrate`",
};
const NO_PERMISSION: Cause = Cause {
    problem: "permission denied",
    advice: "use another user, or grant the permission",
};
const NO_ENTRY: Cause = Cause {
    problem: "the database refused the connection",
    advice: "check user, password and database in --url or OUTBOX_DATABASE_URL",
};
const NO_FILE: Cause = Cause {
    problem: "the database file cannot be opened",
    advice: "check the path in --url or OUTBOX_DATABASE_URL; `?mode=rwc` at its end creates the file",
};
const NO_CONNECTION: Cause = Cause {
    problem: "cannot connect to the database",
    advice: "check --url or OUTBOX_DATABASE_URL, and that the server is running",
};
const BAD_URL: Cause = Cause {
    problem: "the database URL is invalid",
    advice: "it must look like postgres://user@host/database, mysql://user@host/database or sqlite://path",
};

impl Cause {
    /// None if the database can be used and only this statement failed.
    fn of(error: &sqlx::Error) -> Option<Self> {
        match error {
            sqlx::Error::Database(refusal) => Self::of_refusal(&**refusal),
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => None,
            sqlx::Error::Configuration(_) => Some(BAD_URL),
            _ => Some(NO_CONNECTION),
        }
    }

    fn of_refusal(error: &dyn DatabaseError) -> Option<Self> {
        if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
            return match error.number() {
                1146 => Some(NO_TABLES),
                1054 => Some(OLD_TABLES),
                1142 | 1143 | 1227 | 1290 | 1370 | 1836 => Some(NO_PERMISSION),
                1044 | 1045 | 1049 | 1698 => Some(NO_ENTRY),
                _ => None,
            };
        }
        let code = error.code().unwrap_or_default();
        let sqlite = error.try_downcast_ref::<sqlx::sqlite::SqliteError>();
        if sqlite.is_some() {
            let says = |text: &str| error.message().contains(text);
            // SQLite's primary code is the lowest byte of the extended code.
            return match code.parse::<u32>().unwrap_or(0) & 0xff {
                8 | 23 => Some(NO_PERMISSION),
                14 => Some(NO_FILE),
                1 if says("no such table") || says("unknown database") => Some(NO_TABLES),
                1 if says("no such column") => Some(OLD_TABLES),
                _ => None,
            };
        }
        match &*code {
            "42P01" | "3F000" => Some(NO_TABLES),
            "42703" => Some(OLD_TABLES),
            "42501" | "25006" => Some(NO_PERMISSION),
            "28P01" | "28000" | "3D000" => Some(NO_ENTRY),
            _ => None,
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
