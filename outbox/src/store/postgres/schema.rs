//! The tables of PostgreSQL.

use sqlx::{PgPool, Postgres};

use super::QUOTE;
use crate::{
    outbox::{
        Result,
        error::{DbContext as _, Operation},
    },
    store::{Migration, SchemaSql, TableNames, migrate, statements::statements, trusted},
};

statements! {
    /// The statements around migrations.
    MigrateStatements, include_str!("sql/migrate.sql");
    lock_migration, create_versions, newest_version, add_version,
}

impl SchemaSql for Postgres {
    fn migrations(names: &TableNames) -> Vec<Migration> {
        let first = include_str!("sql/schema.sql");
        vec![Migration::of_file(1, first, names, QUOTE)]
    }

    async fn migrate(pool: &PgPool, names: &TableNames) -> Result<i64> {
        let sql = MigrateStatements::render(names, QUOTE).map_err(sqlx::Error::from);
        let sql = sql.during(Operation::Migrate)?;
        // One transaction: its lock ends with it, also when this future is dropped.
        let mut tx = pool.begin().await.during(Operation::Migrate)?;
        let lock = sqlx::query(sql.lock_migration).bind(names.to_string());
        lock.execute(&mut *tx).await.during(Operation::Migrate)?;
        if let Some(schema) = names.schema() {
            let create = trusted(format!("create schema if not exists \"{schema}\""));
            let create = sqlx::query(create).execute(&mut *tx);
            create.await.during(Operation::Migrate)?;
        }
        let create = sqlx::query(sql.create_versions).execute(&mut *tx);
        create.await.during(Operation::Migrate)?;
        let newest = sqlx::query_scalar(sql.newest_version).fetch_one(&mut *tx);
        let found = newest.await.during(Operation::Migrate)?;
        for step in migrate::missing(Self::migrations(names), found)? {
            for statement in step.statements {
                let statement = sqlx::query(trusted(statement)).execute(&mut *tx);
                statement.await.during(Operation::Migrate)?;
            }
            let add = sqlx::query(sql.add_version.clone()).bind(step.version);
            add.execute(&mut *tx).await.during(Operation::Migrate)?;
        }
        tx.commit().await.during(Operation::Migrate)?;
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
