//! [`TempFolder`]: the folder with the kit's database. Dropping the kit removes it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use super::{KitError, error::database};
use crate::outbox::Result;

/// How long a statement waits for an open transaction of the test. The wait is short, because such a
/// transaction usually belongs to the same task and cannot end while the kit waits.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// A temporary folder. Dropping this value removes it.
#[derive(Debug)]
pub(super) struct TempFolder(PathBuf);

impl TempFolder {
    pub(super) fn new() -> Result<Self, KitError> {
        let name = format!("outbox-testing-{}", uuid::Uuid::now_v7().simple());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).map_err(|source| KitError::Folder { source })?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) async fn pool(&self) -> Result<SqlitePool> {
        let options = SqliteConnectOptions::new()
            .filename(self.0.join("outbox.sqlite"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // The data need not survive a crash of the machine.
            .synchronous(SqliteSynchronous::Off)
            .busy_timeout(BUSY_TIMEOUT);
        SqlitePoolOptions::new()
            .max_connections(16)
            .acquire_timeout(BUSY_TIMEOUT * 5)
            .connect_with(options)
            .await
            .map_err(database)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // An error is ignored: the folder is in the system's folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
