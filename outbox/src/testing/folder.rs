//! The kit's database: a file of its own, gone with the kit.

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

/// How long to wait for a transaction of the test. It is in the same process, and as a rule in
/// the same task: it will not end while the kit waits.
const PATIENCE: Duration = Duration::from_secs(1);

/// A folder that is removed when this is dropped, as far as the operating system lets us.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
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
            // Nothing here has to outlive a crash of the machine.
            .synchronous(SqliteSynchronous::Off)
            .busy_timeout(PATIENCE);
        SqlitePoolOptions::new()
            .max_connections(16)
            .acquire_timeout(PATIENCE * 5)
            .connect_with(options)
            .await
            .map_err(database)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever empties the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
