//! [`Tables`]: the stored outbox without its handlers.

use std::fmt;

use sqlx::Pool;

use super::{Operations, operations::ask};
use crate::{
    config::{Config, DEFAULT_PARTITIONS},
    outbox::error::{DbContext as _, Operation, Result},
    store::{self, Database, Operator, TableNames},
};

/// The tables of an outbox, for programs that have none of its handlers: tools, dashboards, the
/// command line. Only the methods access the database.
///
/// Running dispatchers notice a change within their `poll-interval`, like every change of another
/// program.
///
/// ```
/// use outbox::operations::{Precision, Tables};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> outbox::Result<()> {
/// # use sqlx::sqlite::SqlitePoolOptions;
/// # let pool = SqlitePoolOptions::new().max_connections(1).connect_lazy("sqlite::memory:").unwrap();
/// let tables = Tables::new(pool);
/// # assert_eq!(tables.schema_version().await?, None);
/// tables.migrate().await?;
/// let counts = tables.operations().counts(Precision::Exact).await?;
/// println!("{} failed", counts.failed);
/// # assert_eq!(tables.schema_version().await?, Some(tables.newest_schema_version()));
/// # Ok(())
/// # }
/// ```
pub struct Tables<Db: Database> {
    pool: Pool<Db>,
    names: TableNames,
    partitions: u16,
}

impl<Db: Database> Tables<Db> {
    /// Tables in the connection's own schema whose names start with `outbox_`.
    #[must_use]
    pub fn new(pool: Pool<Db>) -> Self {
        Self {
            pool,
            names: TableNames::default(),
            partitions: DEFAULT_PARTITIONS,
        }
    }

    /// Tables in this schema (in MySQL the database), or in the connection's own, whose names start
    /// with this prefix.
    ///
    /// # Errors
    /// When the schema or the prefix is not a plain identifier.
    pub fn named(self, schema: Option<String>, prefix: impl Into<String>) -> Result<Self> {
        let names = TableNames::new(schema, prefix.into())?;
        Ok(Self { names, ..self })
    }

    /// The number of partitions that [`migrate`](Self::migrate) gives to new tables. Tables that exist keep
    /// theirs. Default: 64.
    ///
    /// # Errors
    /// When the number is not from 1 to 512.
    pub fn partitions(self, partitions: u16) -> Result<Self> {
        let mut config = Config::default();
        config.schema_initialization.partitions = partitions;
        config.check()?;
        Ok(Self { partitions, ..self })
    }

    /// The interface for people on call: count, list, replay, discard, pause.
    #[must_use]
    pub fn operations(&self) -> Operations<'_, Db> {
        Operations {
            pool: &self.pool,
            names: &self.names,
            signals: None,
        }
    }

    /// Creates or updates the tables. Does nothing if they are up to date. Returns the version that they
    /// had before, or 0 if there were none.
    ///
    /// # Errors
    /// When the database fails, or a newer version of this library has migrated the tables.
    pub async fn migrate(&self) -> Result<i64> {
        Db::migrate(&self.pool, &self.names, self.partitions).await
    }

    /// The statements of [`migrate`](Self::migrate), to be run by hand.
    #[must_use]
    pub fn schema_sql(&self) -> String {
        store::as_script(&Db::migrations(&self.names, self.partitions))
    }

    /// The version that [`migrate`](Self::migrate) stored. `None` if the tables do not exist, or if this
    /// user may not read them.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn schema_version(&self) -> Result<Option<i64>> {
        let operations = self.operations();
        ask!(operations, Operation::SchemaVersion, visible_version())
    }

    /// The version that [`migrate`](Self::migrate) updates the tables to.
    #[must_use]
    pub fn newest_schema_version(&self) -> i64 {
        Db::newest_version(&self.names)
    }
}

impl<Db: Database> Operator<'_, Db> {
    /// The version of the tables. `None` if they do not exist, or if this user may not read them.
    pub(super) async fn visible_version(&mut self) -> Result<Option<i64>, sqlx::Error> {
        match self.schema_version().await {
            Err(sqlx::Error::Database(_)) => Ok(None),
            found => found,
        }
    }
}

// Not derived: that would ask for a database type that can be cloned.
impl<Db: Database> Clone for Tables<Db> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            names: self.names.clone(),
            partitions: self.partitions,
        }
    }
}

impl<Db: Database> fmt::Debug for Tables<Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables")
            .field("database", &Db::NAME)
            .field("names", &format_args!("{}", self.names))
            .finish()
    }
}
