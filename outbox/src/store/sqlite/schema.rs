//! The tables of SQLite.

use sqlx::{Sqlite, SqlitePool};

use super::QUOTE;
use crate::{
    outbox::{Result, error::While as _},
    store::{
        Migration, SchemaSql, TableNames,
        migrate::{self, MIGRATING},
        statements::statements,
        trusted,
    },
};

statements! {
    /// The statements around migrations.
    MigrateStatements,
    concat!(include_str!("sql/fragments.sql"), include_str!("sql/migrate.sql"));
    create_versions, newest_version, add_version,
}

impl SchemaSql for Sqlite {
    fn migrations(names: &TableNames) -> Vec<Migration> {
        let first = concat!(
            include_str!("sql/fragments.sql"),
            include_str!("sql/schema.sql")
        );
        vec![Migration::of_file(1, first, names, QUOTE)]
    }

    async fn migrate(pool: &SqlitePool, names: &TableNames) -> Result<i64> {
        let sql = MigrateStatements::render(names, QUOTE).map_err(sqlx::Error::from);
        let sql = sql.doing(MIGRATING)?;
        // `immediate`: the one writer from the start, so that no other process migrates meanwhile.
        let mut tx = pool.begin_with("begin immediate").await.doing(MIGRATING)?;
        let create = sqlx::query(sql.create_versions).execute(&mut *tx);
        create.await.doing(MIGRATING)?;
        let newest = sqlx::query_scalar(sql.newest_version).fetch_one(&mut *tx);
        let found = newest.await.doing(MIGRATING)?;
        for step in migrate::missing(Self::migrations(names), found)? {
            for statement in step.statements {
                let statement = sqlx::query(trusted(statement)).execute(&mut *tx);
                statement.await.doing(MIGRATING)?;
            }
            let add = sqlx::query(sql.add_version.clone()).bind(step.version);
            add.execute(&mut *tx).await.doing(MIGRATING)?;
        }
        tx.commit().await.doing(MIGRATING)?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_rendered() {
        MigrateStatements::render(&TableNames::usual(), QUOTE).unwrap();
    }
}
