//! Migrations: the steps from an empty database to the newest schema.

use sqlx::{Pool, SqlSafeStr as _};

use super::{
    Dialect, Statements, TableNames,
    call::{execute, read},
    statements::SqlFile,
    trusted,
};
use crate::outbox::{
    Error, Result,
    error::{DbContext as _, Operation},
};

/// One step. Each statement does nothing if it ran before, so a step that failed halfway can be
/// repeated.
#[derive(Debug, Clone)]
pub struct Migration {
    pub(crate) version: i64,
    pub(crate) statements: Vec<String>,
}

/// The statements that create the tables.
pub trait SchemaSql: Dialect {
    /// Every step from an empty database to the newest schema, in order.
    /// `partitions`: how many partitions there are, if the steps create the tables.
    fn migrations(names: &TableNames, partitions: u16) -> Vec<Migration> {
        let number = partitions.to_string();
        let with_partitions = |text: &String| text.replace("{partitions}", &number);
        let versions = SqlFile::read::<Self>(Self::WORDS.schema, names).versions();
        let steps = (1..).zip(versions);
        let steps = steps.map(|(version, statements)| Migration {
            version,
            statements: statements.iter().map(with_partitions).collect(),
        });
        steps.collect()
    }

    /// The version of the newest schema.
    fn newest_version(names: &TableNames) -> i64 {
        let steps = Self::migrations(names, 0);
        steps.last().map_or(0, |step| step.version)
    }

    /// Applies the missing steps, one process at a time. Returns the version that it found.
    fn migrate(
        pool: &Pool<Self>,
        names: &TableNames,
        partitions: u16,
    ) -> impl Future<Output = Result<i64>> + Send {
        async move {
            let sql = Self::statements(names).map_err(sqlx::Error::from);
            let sql = sql.during(Operation::Migrate)?;
            // One transaction: it holds the lock, and also ends when this future is dropped.
            let tx = pool.begin_with(Self::BEGIN.into_sql_str()).await;
            let mut tx = tx.during(Operation::Migrate)?;
            let tables = names.to_string();
            let lock = execute::<Self>(&mut tx, sql.lock_migration.bind("tables", &*tables));
            lock.await.during(Operation::Migrate)?;
            let found = apply_missing::<Self>(&mut tx, &sql, names, partitions).await?;
            tx.commit().await.during(Operation::Migrate)?;
            Ok(found)
        }
    }
}

/// Applies the missing steps. The caller holds the migration lock. Returns the version that it found.
pub(super) async fn apply_missing<Db: SchemaSql>(
    connection: &mut Db::Connection,
    sql: &Statements,
    names: &TableNames,
    partitions: u16,
) -> Result<i64> {
    let found = found_version::<Db>(connection, sql, names);
    let found = found.await.during(Operation::Migrate)?;
    for step in missing_steps(Db::migrations(names, partitions), found)? {
        let applied = apply::<Db>(connection, sql, step).await;
        applied.during(Operation::Migrate)?;
    }
    Ok(found)
}

async fn found_version<Db: Dialect>(
    connection: &mut Db::Connection,
    sql: &Statements,
    names: &TableNames,
) -> Result<i64, sqlx::Error> {
    if names.has_schema() {
        execute::<Db>(connection, sql.create_schema.call()).await?;
    }
    execute::<Db>(connection, sql.create_versions.call()).await?;
    let versions = read::<Db, i64>(connection, sql.newest_version.call()).await?;
    Ok(versions.first().copied().unwrap_or(0))
}

async fn apply<Db: Dialect>(
    connection: &mut Db::Connection,
    sql: &Statements,
    step: Migration,
) -> Result<(), sqlx::Error> {
    for statement in step.statements {
        Db::execute_query(connection, sqlx::query(trusted(statement))).await?;
    }
    let add = sql.add_version.bind("version", step.version);
    execute::<Db>(connection, add).await.map(drop)
}

fn missing_steps(steps: Vec<Migration>, found: i64) -> Result<Vec<Migration>> {
    let known = steps.iter().map(|step| step.version).max().unwrap_or(0);
    if found > known {
        return Err(Error::NewerSchema { found, known });
    }
    Ok(steps
        .into_iter()
        .filter(|step| step.version > found)
        .collect())
}

/// All steps as one SQL script, for a migration by hand.
pub(crate) fn as_script(steps: &[Migration]) -> String {
    let mut text = String::new();
    for step in steps {
        text.push_str(&format!("-- outbox schema version {}\n", step.version));
        for statement in &step.statements {
            text.push_str(statement);
            text.push_str(";\n\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Vec<Migration> {
        [1, 2, 3]
            .map(|version| Migration {
                version,
                statements: vec![format!("step {version}")],
            })
            .to_vec()
    }

    #[test]
    fn only_later_steps_are_missing() {
        let versions = |found| {
            let missing = missing_steps(steps(), found).unwrap();
            missing.iter().map(|step| step.version).collect::<Vec<_>>()
        };
        assert_eq!(versions(0), [1, 2, 3]);
        assert_eq!(versions(2), [3]);
        assert!(versions(3).is_empty());
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let error = missing_steps(steps(), 4).unwrap_err();
        assert!(
            matches!(error, Error::NewerSchema { found: 4, known: 3 }),
            "{error}"
        );
    }
}
