//! [`Tables`]: the stored outbox without its handlers.

use std::fmt;

use sqlx::Pool;

use super::{Operations, operations::ask};
use crate::{
    outbox::error::{DbContext as _, Operation, Result},
    store::{self, Database, Operator, TableNames},
};

/// The tables of an outbox, for programs that have none of its handlers: tools, dashboards, the
/// command line. Only the methods access the database.
///
/// Running dispatchers notice a change within their `poll-interval`, as they notice every change of
/// another program.
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
#[derive(Clone)]
pub struct Tables<Db: Database> {
    pool: Pool<Db>,
    names: TableNames,
}

impl<Db: Database> Tables<Db> {
    /// Tables in the connection's own schema whose names start with `outbox_`.
    #[must_use]
    pub fn new(pool: Pool<Db>) -> Self {
        Self {
            pool,
            names: TableNames::usual(),
        }
    }

    /// Tables in this schema (in MySQL the database), or in the connection's own, whose names start
    /// with this prefix.
    ///
    /// # Errors
    /// When one of them is no plain identifier.
    pub fn named(self, schema: Option<String>, prefix: impl Into<String>) -> Result<Self> {
        let names = TableNames::new(schema, prefix.into())?;
        Ok(Self { names, ..self })
    }

    /// What a person on call looks at and changes.
    #[must_use]
    pub fn operations(&self) -> Operations<'_, Db> {
        Operations {
            pool: &self.pool,
            names: &self.names,
            signals: None,
        }
    }

    /// Creates or updates the tables; does nothing if they are up to date. The version that they
    /// had before; 0 if there were none.
    ///
    /// # Errors
    /// When the database fails, or the tables are those of a newer version of this library.
    pub async fn migrate(&self) -> Result<i64> {
        Db::migrate(&self.pool, &self.names).await
    }

    /// The statements of [`migrate`](Self::migrate), for those who run them by hand.
    #[must_use]
    pub fn schema_sql(&self) -> String {
        store::printed(&Db::migrations(&self.names))
    }

    /// The version of the tables, as far as [`migrate`](Self::migrate) has written it down.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn schema_version(&self) -> Result<Option<i64>> {
        let operations = self.operations();
        ask!(operations, Operation::SchemaVersion, visible_version())
    }

    /// The version that [`migrate`](Self::migrate) leads to.
    #[must_use]
    pub fn newest_schema_version(&self) -> i64 {
        let steps = Db::migrations(&self.names);
        steps.iter().map(|step| step.version).max().unwrap_or(0)
    }
}

impl<Db: Database> Operator<'_, Db> {
    /// The version of the tables. None if they do not exist, or if this user may not read them.
    pub(super) async fn visible_version(&mut self) -> Result<Option<i64>, sqlx::Error> {
        match self.schema_version().await {
            Err(sqlx::Error::Database(_)) => Ok(None),
            found => found,
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
