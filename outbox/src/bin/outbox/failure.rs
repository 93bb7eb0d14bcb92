//! [`Failure`]: one line that says what is wrong and what to do, and an exit code.

use std::{io, process::ExitCode, sync::OnceLock};

use sqlx::error::DatabaseError;

/// Why a command ends badly.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line cannot be meant so.
    Usage(String),
    /// It cannot be done to what is there.
    Refused(String),
    /// The database cannot be used as it is.
    Unusable(String),
    NotFound(String),
    Interrupted(String),
    Outbox(outbox::Error),
    Io(io::Error),
    /// After a part was done, which stays so.
    After(String, Box<Self>),
}

impl From<outbox::Error> for Failure {
    fn from(error: outbox::Error) -> Self {
        Self::Outbox(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Failure {
    /// Says it on the standard error output.
    pub(crate) fn report(&self) -> ExitCode {
        let (code, _) = self.ending();
        // At 0, whoever reads our output has seen enough.
        if code > 0 {
            eprintln!("outbox: {}", self.line());
        }
        ExitCode::from(code)
    }

    /// What is wrong and what to do.
    pub(crate) fn line(&self) -> String {
        let (_, line) = self.ending();
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        crate::words::plain(&line)
    }

    fn ending(&self) -> (u8, String) {
        match self {
            Self::Usage(line) => (2, line.clone()),
            Self::Refused(line) => (1, line.clone()),
            Self::Unusable(line) => (3, line.clone()),
            Self::NotFound(line) => (4, line.clone()),
            Self::Interrupted(line) => (130, line.clone()),
            Self::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => (0, String::new()),
            Self::Io(error) => (1, format!("the output cannot be written: {error}")),
            Self::Outbox(error) => of_outbox(error),
            Self::After(done, failure) => {
                let (code, line) = failure.ending();
                (code, format!("{line}; {done}"))
            }
        }
    }
}

fn of_outbox(error: &outbox::Error) -> (u8, String) {
    match error {
        outbox::Error::Database { operation, source } => of_database(operation.as_str(), source),
        outbox::Error::NewerSchema { found, known } => (
            3,
            format!(
                "the outbox tables have version {found}, and this program knows {known}: use a newer `outbox`"
            ),
        ),
        outbox::Error::BadName { .. } => (2, error.to_string()),
        other => (1, scrubbed(&with_causes(other))),
    }
}

/// The password of the URL.
static SECRETS: OnceLock<Vec<String>> = OnceLock::new();

/// Nothing that others say is quoted with these in it.
pub(crate) fn keep_secret(secrets: Vec<String>) {
    // The first time is the only one.
    let _ = SECRETS.set(secrets);
}

fn scrubbed(text: &str) -> String {
    let secrets = SECRETS.get().map_or(&[][..], Vec::as_slice);
    let scrub = |text: String, secret: &String| text.replace(secret.as_str(), "***");
    secrets.iter().fold(text.to_owned(), scrub)
}

/// What the database says, and what to do about it.
pub(crate) fn of_database(operation: &str, error: &sqlx::Error) -> (u8, String) {
    let Some(refused) = error.as_database_error() else {
        return match error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                let says = scrubbed(&error.to_string());
                (
                    1,
                    format!("database error during operation `{operation}`: {says}"),
                )
            }
            other => (3, cannot_be_reached(other)),
        };
    };
    let says = scrubbed(refused.message());
    match kind(refused) {
        Kind::NoTables => (
            3,
            "there are no outbox tables here: create them with `outbox migrate`, or say where they are with --schema and --table-prefix".to_owned(),
        ),
        Kind::OldTables => (
            3,
            format!("the outbox tables are older than this program ({says}): update them with `outbox migrate`"),
        ),
        Kind::NoPermission => (
            3,
            format!("no permission ({says}): use another user, or have the right granted"),
        ),
        Kind::NoEntry => (
            3,
            format!("the database lets nobody in with this URL ({says}): check user, password and database in --url or OUTBOX_DATABASE_URL"),
        ),
        Kind::NoFile => (
            3,
            format!("the file cannot be opened ({says}): check the path in --url or OUTBOX_DATABASE_URL; `?mode=rwc` at its end creates one"),
        ),
        Kind::Other => (1, format!("database error during operation `{operation}`: {says}")),
    }
}

fn cannot_be_reached(error: &sqlx::Error) -> String {
    let why = match error {
        sqlx::Error::PoolTimedOut => "it does not answer in time".to_owned(),
        sqlx::Error::Configuration(why) => {
            let why = scrubbed(&why.to_string());
            return format!(
                "the URL of the database is wrong ({why}): it looks like postgres://user@host/database, mysql://user@host/database or sqlite://path"
            );
        }
        other => scrubbed(&with_causes(other)),
    };
    format!(
        "the database cannot be reached ({why}): check --url or OUTBOX_DATABASE_URL, and whether the server runs"
    )
}

enum Kind {
    NoTables,
    OldTables,
    NoPermission,
    NoEntry,
    NoFile,
    Other,
}

fn kind(error: &dyn DatabaseError) -> Kind {
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return match error.number() {
            1146 => Kind::NoTables,
            1054 => Kind::OldTables,
            1142 | 1143 | 1227 | 1290 | 1370 | 1836 => Kind::NoPermission,
            1044 | 1045 | 1049 | 1698 => Kind::NoEntry,
            _ => Kind::Other,
        };
    }
    let code = error.code().unwrap_or_default();
    if error
        .try_downcast_ref::<sqlx::sqlite::SqliteError>()
        .is_some()
    {
        // The last byte is the kind; what stands before it says more.
        return match code.parse::<u32>().unwrap_or(0) & 0xff {
            8 | 23 => Kind::NoPermission,
            14 => Kind::NoFile,
            1 if error.message().contains("no such table") => Kind::NoTables,
            1 if error.message().contains("no such column") => Kind::OldTables,
            1 if error.message().contains("unknown database") => Kind::NoTables,
            _ => Kind::Other,
        };
    }
    match &*code {
        "42P01" | "3F000" => Kind::NoTables,
        "42703" => Kind::OldTables,
        "42501" | "25006" => Kind::NoPermission,
        "28P01" | "28000" | "3D000" => Kind::NoEntry,
        _ => Kind::Other,
    }
}

/// The error and everything that caused it.
fn with_causes(error: &dyn std::error::Error) -> String {
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
