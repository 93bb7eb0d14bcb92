//! [`Site`]: a database with the tables of an outbox and nothing else in it.

use anyhow::ensure;
use outbox::{Config, Outbox, Registry, RegistryBuilder};
use sqlx::Pool;

use crate::{
    arguments::Arguments,
    backlog::{BESIDE, KEYS},
    database::Bench,
    event::Happened,
    progress::Progress,
    server,
};

#[derive(Debug)]
pub(crate) struct Site<Db: Bench> {
    /// Where it is, also for other processes.
    pub(crate) url: String,
    /// For preparing and checking; what is measured has connections of its own.
    pub(crate) pool: Pool<Db>,
    pub(crate) arguments: Arguments,
    pub(crate) progress: Progress,
    folder: Option<Folder>,
}

/// As many connections as a pool has by default.
pub(crate) const CONNECTIONS: u32 = 10;

impl<Db: Bench> Site<Db> {
    pub(crate) async fn create(arguments: &Arguments, name: &str) -> anyhow::Result<Self> {
        let given = server::url(arguments, Db::KIND)?;
        let folder = given.is_none().then(|| Folder::new(name));
        let place = given.or_else(|| folder.as_ref().map(|folder| folder.0.clone()));
        let url = Db::create(&place.unwrap_or_default(), name).await?;
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

    /// Creates the tables, and asks the library which partition each key belongs to.
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
        Db::remember_keys(&self.pool).await?;
        let known = Db::number(&self.pool, "select count(*) from bench_key").await?;
        ensure!(
            known == i64::try_from(keys.len())?,
            "{known} keys are known"
        );
        Db::empty(&self.pool).await
    }

    /// An outbox with connections of its own.
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

    /// Nothing of a backlog is left to do.
    pub(crate) async fn ensure_nothing_left(&self) -> anyhow::Result<()> {
        let sql = format!(
            "select count(*) from outbox_record where status <> 'completed' and id < {BESIDE}"
        );
        let left = Db::number(&self.pool, &sql).await?;
        ensure!(left == 0, "{left} records are left that were not completed");
        Ok(())
    }

    /// At the end: nothing is left on the server or the disk.
    pub(crate) async fn remove(self) {
        self.progress.clear();
        self.pool.close().await;
        drop(self.folder);
    }
}

/// A folder that is removed with this value.
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
        // What cannot be removed is left to whoever tidies the temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
