//! [`Site`]: a database that has only the tables of an outbox.

use anyhow::ensure;
use outbox::{Config, Outbox, Registry, RegistryBuilder};
use sqlx::Pool;

use crate::{
    arguments::Arguments,
    backlog::{FIRST_OTHER_ID, KEYS},
    database::Bench,
    event::Happened,
    progress::Progress,
    server,
};

#[derive(Debug)]
pub(crate) struct Site<Db: Bench> {
    /// The URL of the database, also for other processes.
    pub(crate) url: String,
    /// The pool for preparing and checking; measured code has its own connections.
    pub(crate) pool: Pool<Db>,
    pub(crate) arguments: Arguments,
    pub(crate) progress: Progress,
    folder: Option<Folder>,
}

/// The default number of connections of a pool.
pub(crate) const CONNECTIONS: u32 = 10;

impl<Db: Bench> Site<Db> {
    pub(crate) async fn create(arguments: &Arguments, name: &str) -> anyhow::Result<Self> {
        let given = server::url(arguments, Db::KIND)?;
        let folder = given.is_none().then(|| Folder::new(name));
        let parent = given.or_else(|| folder.as_ref().map(|folder| folder.0.clone()));
        let url = Db::create(&parent.unwrap_or_default(), name).await?;
        let site = Self {
            pool: Db::connect(&url, 4).await?,
            url,
            arguments: arguments.clone(),
            progress: Progress::new(),
            folder,
        };
        site.prepare().await?;
        Ok(site)
    }

    /// Creates the tables, and lets the library compute the partition of each key.
    async fn prepare(&self) -> anyhow::Result<()> {
        let publisher = Outbox::builder(self.pool.clone())
            .registry(Registry::builder().allow_empty())
            .build()
            .await?;
        let keys: Vec<Happened> = (0..2 * KEYS).map(|key| Happened::new(key, key)).collect();
        let mut tx = self.pool.begin().await?;
        for keys in keys.chunks(1_000) {
            publisher.publish_all(&mut tx, keys).await?;
        }
        tx.commit().await?;
        Db::store_keys(&self.pool).await?;
        let known = Db::number(&self.pool, "select count(*) from bench_key").await?;
        ensure!(
            known == i64::try_from(keys.len())?,
            "{known} keys are stored"
        );
        Db::empty(&self.pool).await
    }

    /// An outbox with its own connections.
    pub(crate) async fn outbox(
        &self,
        registry: RegistryBuilder,
        config: Config,
        connections: u32,
    ) -> anyhow::Result<(Outbox<Db>, Pool<Db>)> {
        let pool = Db::connect(&self.url, connections).await?;
        let builder = Outbox::builder(pool.clone()).registry(registry);
        Ok((builder.config(config).build().await?, pool))
    }

    /// Fails if a record of the backlog is not completed.
    pub(crate) async fn ensure_nothing_left(&self) -> anyhow::Result<()> {
        let sql = format!(
            "select count(*) from outbox_record where status <> 'completed' and id < {FIRST_OTHER_ID}"
        );
        let left = Db::number(&self.pool, &sql).await?;
        ensure!(left == 0, "{left} records were not completed");
        Ok(())
    }

    /// Closes the connections and removes the files.
    pub(crate) async fn remove(self) {
        self.progress.clear();
        self.pool.close().await;
        drop(self.folder);
    }
}

/// A folder that is removed when this value is dropped.
#[derive(Debug)]
struct Folder(String);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("outbox-bench-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(folder).display().to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Files that cannot be removed stay in the temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
