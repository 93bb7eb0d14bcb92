//! SQLite.

use std::{fs, path::Path, time::Duration};

use sqlx::{
    Sqlite, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{Bench, Kind, plain_statements};
use crate::usage::Reading;

impl Bench for Sqlite {
    const KIND: Kind = Kind::Sqlite;
    const VERSION: &str = "select 'SQLite ' || sqlite_version()";
    const BEGIN_SNAPSHOT: &str = "begin";

    /// `url` is a folder.
    async fn create(url: &str, name: &str) -> anyhow::Result<String> {
        fs::create_dir_all(url)?;
        let file = Path::new(url).join(format!("{name}.sqlite"));
        for suffix in ["", "-wal", "-shm"] {
            let mut path = file.clone().into_os_string();
            path.push(suffix);
            match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        Ok(file.display().to_string())
    }

    async fn connect(url: &str, connections: u32) -> anyhow::Result<SqlitePool> {
        let options = SqliteConnectOptions::new()
            .filename(url)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(Duration::from_secs(10));
        let pool = SqlitePoolOptions::new()
            .max_connections(connections)
            .min_connections(connections.min(4));
        Ok(pool.connect_with(options).await?)
    }

    plain_statements!();

    async fn empty(pool: &SqlitePool) -> anyhow::Result<()> {
        let sql =
            "delete from outbox_record; delete from outbox_delivery; delete from outbox_failure;
delete from sqlite_sequence where name in ('outbox_record', 'outbox_delivery')";
        Self::execute(pool, sql).await
    }

    async fn settle_down(pool: &SqlitePool) -> anyhow::Result<()> {
        Self::execute(pool, "analyze; pragma wal_checkpoint(truncate)").await
    }

    async fn reading(_: &SqlitePool) -> anyhow::Result<Option<Reading>> {
        Ok(None)
    }
}
