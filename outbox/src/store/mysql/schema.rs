//! The tables of MySQL.

use sqlx::{Connection as _, MySql, MySqlPool};

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

impl SchemaSql for MySql {
    fn migrations(names: &TableNames) -> Vec<Migration> {
        let first = include_str!("sql/schema.sql");
        vec![Migration::of_file(1, first, names, QUOTE)]
    }

    async fn migrate(pool: &MySqlPool, names: &TableNames) -> Result<i64> {
        let sql = MigrateStatements::render(names, QUOTE).map_err(sqlx::Error::from);
        let sql = sql.during(Operation::Migrate)?;
        // Data definition ends transactions here, so the lock is the session's; out of the pool,
        // so that the session, and the lock with it, ends when this future is dropped.
        let mut session = pool.acquire().await.during(Operation::Migrate)?.detach();
        let lock = sqlx::query_scalar(sql.lock_migration).bind(names.to_string());
        let lock: Option<i64> = lock
            .fetch_one(&mut session)
            .await
            .during(Operation::Migrate)?;
        if lock != Some(1) {
            let busy = "another process has been migrating for 60 s, or is stuck";
            return Err(sqlx::Error::Protocol(busy.to_owned())).during(Operation::Migrate);
        }
        if let Some(schema) = names.schema() {
            let create = trusted(format!("create schema if not exists `{schema}`"));
            let create = sqlx::query(create).execute(&mut session);
            create.await.during(Operation::Migrate)?;
        }
        let create = sqlx::query(sql.create_versions).execute(&mut session);
        create.await.during(Operation::Migrate)?;
        let newest = sqlx::query_scalar(sql.newest_version).fetch_one(&mut session);
        let found = newest.await.during(Operation::Migrate)?;
        for step in migrate::missing(Self::migrations(names), found)? {
            for statement in step.statements {
                let statement = sqlx::query(trusted(statement)).execute(&mut session);
                statement.await.during(Operation::Migrate)?;
            }
            let add = sqlx::query(sql.add_version.clone()).bind(step.version);
            add.execute(&mut session).await.during(Operation::Migrate)?;
        }
        session.close().await.during(Operation::Migrate)?;
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
