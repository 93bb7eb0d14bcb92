//! [`ConnectionArguments`]: the database and the tables in it.

use std::time::Duration;

use clap::Args;
use outbox::{Database, operations::Tables};
use sqlx::{ConnectOptions as _, Connection, Pool, pool::PoolOptions};

use crate::failure::{Exit, Failure, Result};

/// How long the program waits for a server that does not answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct ConnectionArguments {
    /// The database: postgres://.., mysql://.. or sqlite://..; without it, `DATABASE_URL` is used.
    /// Other users of the machine can read command lines: put a URL with a password into a variable
    #[arg(long, global = true)]
    #[arg(env = "OUTBOX_DATABASE_URL", hide_env_values = true)]
    url: Option<String>,
    /// The schema of the tables (MySQL: the database); without it, the connection's default
    #[arg(long, global = true, env = "OUTBOX_SCHEMA")]
    schema: Option<String>,
    /// The prefix of the table names
    #[arg(long, global = true)]
    #[arg(env = "OUTBOX_TABLE_PREFIX", default_value = "outbox_")]
    table_prefix: String,
}

impl ConnectionArguments {
    pub(crate) fn url(&self) -> Result<String> {
        let url = self.url.clone();
        url.or_else(|| std::env::var("DATABASE_URL").ok())
            .filter(|url| !url.is_empty())
            .ok_or_else(|| {
                let line = "no database URL: use --url, or set OUTBOX_DATABASE_URL or DATABASE_URL";
                Failure::new(Exit::Usage, line)
            })
    }

    /// The passwords of the URL, as the URL has them and percent-decoded. A password can be in front
    /// of the host or among the parameters.
    pub(crate) fn passwords(&self) -> Vec<String> {
        let url = self.url().unwrap_or_default();
        let before_host = url
            .split_once("://")
            .and_then(|(_, rest)| rest.rsplit_once('@'))
            .and_then(|(user, _)| user.split_once(':'))
            .map(|(_, password)| password);
        let parameters = url.split(['?', '&']).skip(1);
        let among_parameters = parameters.filter_map(|one| one.strip_prefix("password="));
        let passwords = before_host.into_iter().chain(among_parameters);
        passwords
            .filter(|password| !password.is_empty())
            .flat_map(|password| [password.to_owned(), percent_decoded(password)])
            .collect()
    }

    /// The tables, without having connected to the database unless `connects`.
    pub(crate) async fn tables<Db: Database>(
        &self,
        url: &str,
        connects: bool,
    ) -> Result<Tables<Db>> {
        let options: <Db::Connection as Connection>::Options =
            url.parse().map_err(cannot_connect)?;
        let options = options.disable_statement_logging();
        if connects {
            // A pool would retry until its timeout and lose the error.
            let connected = tokio::time::timeout(CONNECT_TIMEOUT, options.connect()).await;
            let first = connected
                .unwrap_or(Err(sqlx::Error::PoolTimedOut))
                .map_err(cannot_connect)?;
            // An error while closing does not matter: the connection was only a check.
            let _ = first.close().await;
        }
        let pool: Pool<Db> = PoolOptions::new()
            .max_connections(2)
            .acquire_timeout(CONNECT_TIMEOUT)
            .connect_lazy_with(options);
        let tables = Tables::new(pool).named(self.schema.clone(), &self.table_prefix)?;
        if connects {
            check_version(&tables).await?;
        }
        Ok(tables)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of `map_err`")]
fn cannot_connect(error: sqlx::Error) -> Failure {
    Failure::of_database("connect", &error).with(Exit::Database)
}

/// Refuses tables of a newer version than this program knows.
async fn check_version<Db: Database>(tables: &Tables<Db>) -> Result {
    let known = tables.newest_schema_version();
    match tables.schema_version().await? {
        Some(found) if found > known => Err(outbox::Error::NewerSchema { found, known }.into()),
        _ => Ok(()),
    }
}

/// Replaces `%41` by `A`.
fn percent_decoded(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let digits = piece.split_at_checked(2);
        match digits.map(|(digits, rest)| (u8::from_str_radix(digits, 16), rest)) {
            Some((Ok(byte), rest)) => {
                bytes.push(byte);
                bytes.extend(rest.bytes());
            }
            _ => {
                bytes.push(b'%');
                bytes.extend(piece.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passwords_of(url: &str) -> Vec<String> {
        let arguments = ConnectionArguments {
            url: Some(url.to_owned()),
            schema: None,
            table_prefix: String::new(),
        };
        arguments.passwords()
    }

    #[test]
    fn a_password_is_found_encoded_and_decoded() {
        let found = passwords_of("postgres://me:a%40b@host/db");
        assert_eq!(found, ["a%40b", "a@b"]);
        assert_eq!(passwords_of("mysql://me:p@ss:w@host"), ["p@ss:w", "p@ss:w"]);
        let found = passwords_of("postgres://host/db?user=me&password=a%40b");
        assert_eq!(found, ["a%40b", "a@b"]);
        assert!(passwords_of("postgres://me@host/db").is_empty());
        assert!(passwords_of("sqlite://shop.db").is_empty());
    }
}
