//! From a URL to a database.

use std::{str::FromStr as _, time::Duration};

use outbox::{Database, operations::Tables};
use sqlx::{
    ConnectOptions, Connection as _, MySql, Pool, Postgres, Sqlite, mysql::MySqlConnectOptions,
    pool::PoolOptions, postgres::PgConnectOptions, sqlite::SqliteConnectOptions,
};

use crate::{
    arguments::TargetArguments,
    failure::{Failure, of_database},
};

/// How long to wait for a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) enum Target {
    Postgres(Tables<Postgres>),
    MySql(Tables<MySql>),
    Sqlite(Tables<Sqlite>),
}

/// Opens the tables that the arguments name, if `connects` after a first connection to see whether
/// that works.
pub(crate) async fn open(arguments: &TargetArguments, connects: bool) -> Result<Target, Failure> {
    let url = url(arguments)?;
    let scheme = url.split(':').next().unwrap_or_default();
    let wrong = |error: sqlx::Error| unusable(&error);
    Ok(match scheme {
        "postgres" | "postgresql" => {
            let options = PgConnectOptions::from_str(&url).map_err(wrong)?;
            Target::Postgres(tables(options, arguments, connects).await?)
        }
        "mysql" | "mariadb" => {
            let options = MySqlConnectOptions::from_str(&url).map_err(wrong)?;
            Target::MySql(tables(options, arguments, connects).await?)
        }
        "sqlite" => {
            let options = SqliteConnectOptions::from_str(&url).map_err(wrong)?;
            Target::Sqlite(tables(options, arguments, connects).await?)
        }
        // Not quoted: whatever it is, there may be a password in it.
        _ => {
            return Err(Failure::Usage(
                "the URL of the database must begin with postgres://, mysql:// or sqlite://"
                    .to_owned(),
            ));
        }
    })
}

fn url(arguments: &TargetArguments) -> Result<String, Failure> {
    let url = arguments.url.clone();
    url.or_else(|| std::env::var("DATABASE_URL").ok())
        .filter(|url| !url.is_empty())
        .ok_or_else(|| {
            Failure::Usage(
                "which database? Give --url, or set OUTBOX_DATABASE_URL or DATABASE_URL".to_owned(),
            )
        })
}

/// What must not be printed, whoever quotes it: the password of the URL, as it is written there and
/// as it is meant.
pub(crate) fn secrets(arguments: &TargetArguments) -> Vec<String> {
    let Ok(url) = url(arguments) else {
        return Vec::new();
    };
    let Some((_, rest)) = url.split_once("://") else {
        return Vec::new();
    };
    let Some((user, _)) = rest.rsplit_once('@') else {
        return Vec::new();
    };
    let Some((_, password)) = user.split_once(':') else {
        return Vec::new();
    };
    let mut secrets = vec![password.to_owned(), decoded(password)];
    secrets.retain(|secret| !secret.is_empty());
    secrets
}

/// With `%41` as `A`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn tables<Db: Database>(
    options: <Db::Connection as sqlx::Connection>::Options,
    arguments: &TargetArguments,
    connects: bool,
) -> Result<Tables<Db>, Failure> {
    let options = options.disable_statement_logging();
    if connects {
        // A pool would try again until its time is up, and forget why.
        let first = tokio::time::timeout(PATIENCE, options.connect()).await;
        let first = first.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        let first = first.map_err(|error| unusable(&error))?;
        // Its end is not worth an error.
        let _ = first.close().await;
    }
    let pool: Pool<Db> = PoolOptions::new()
        .max_connections(2)
        .acquire_timeout(PATIENCE)
        .connect_lazy_with(options);
    let schema = arguments.schema.clone();
    Ok(Tables::new(pool).named(schema, &arguments.table_prefix)?)
}

fn unusable(error: &sqlx::Error) -> Failure {
    // Whatever goes wrong before anything was asked for is the connection's.
    let (_, line) = of_database("connect", error);
    Failure::Unusable(line)
}

/// Tables of a newer version than this program knows are not touched.
pub(crate) async fn check_version<Db: Database>(tables: &Tables<Db>) -> Result<(), Failure> {
    let known = tables.newest_schema_version();
    match tables.schema_version().await? {
        Some(found) if found > known => Err(outbox::Error::NewerSchema { found, known }.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets_of(url: &str) -> Vec<String> {
        secrets(&TargetArguments {
            url: Some(url.to_owned()),
            schema: None,
            table_prefix: String::new(),
        })
    }

    #[test]
    fn a_password_is_found_however_it_is_written() {
        assert_eq!(secrets_of("postgres://me:a%40b@host/db"), ["a%40b", "a@b"]);
        assert_eq!(secrets_of("mysql://me:p@ss:w@host"), ["p@ss:w", "p@ss:w"]);
        assert!(secrets_of("postgres://me@host/db").is_empty());
        assert!(secrets_of("sqlite://shop.db").is_empty());
    }
}
