//! The statements of operators, commands and the inbox, written once for all databases.

mod change;
mod command;
mod count;
mod instances;
mod list;
mod restore;
mod rows;

pub(crate) use change::Prunable;
pub(crate) use command::{CommandClaim, CommandKey, Retained};
pub(crate) use count::{
    CappedCount, OPEN, SAMPLE_END, SampleExtent, StatusCount, StatusSample, Table,
};
pub(crate) use list::ListQuery;

use super::{
    TableNames,
    dialect::{Dialect, Statement},
};

/// Runs the statements on one connection, or in one transaction.
pub(crate) struct Operator<'c, Db: Dialect> {
    connection: &'c mut Db::Connection,
    names: &'c TableNames,
}

impl<'c, Db: Dialect> Operator<'c, Db> {
    pub(crate) fn new(connection: &'c mut Db::Connection, names: &'c TableNames) -> Self {
        Self { connection, names }
    }

    /// The quoted name of a table.
    fn table(&self, name: &str) -> String {
        self.names.table(name, Db::WORDS.quote)
    }

    async fn rows<T>(
        &mut self,
        statement: Statement<Db>,
        decode: impl Fn(&Db::Row) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, sqlx::Error> {
        let rows = Db::fetch_rows(self.connection, statement.query()?).await?;
        rows.iter().map(decode).collect()
    }

    async fn first<T>(
        &mut self,
        statement: Statement<Db>,
        decode: impl Fn(&Db::Row) -> Result<T, sqlx::Error>,
    ) -> Result<Option<T>, sqlx::Error> {
        let rows = Db::fetch_rows(self.connection, statement.query()?).await?;
        rows.first().map(decode).transpose()
    }

    async fn execute(&mut self, statement: Statement<Db>) -> Result<u64, sqlx::Error> {
        Db::execute_query(self.connection, statement.query()?).await
    }
}
